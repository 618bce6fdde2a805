import fc from "fast-check";
import { expect, test } from "vitest";
import { changeOf, type Op, opCode, opOf } from "../../../origin/subscription/ops.ts";
import type { ForebayError } from "../../../shared/errors/mod.ts";
import "../gateway/eventually.ts";

const uint = fc.integer({ min: 0, max: 2 ** 40 });
const text = fc.string({ maxLength: 40, unit: "grapheme" });
const position = fc.record({ record: uint, byte: uint });
const key = fc.uint8Array({ minLength: 32, maxLength: 32 });
const target: fc.Arbitrary<Extract<Op, { code: 33 }>["target"]> = fc.oneof(
  fc.record({ kind: fc.constant("webhook" as const), url: text }),
  fc.record({ kind: fc.constant("pull-wake" as const), stream: text }),
);
const ops: fc.Arbitrary<Op> = fc.oneof(
  fc.record({ code: fc.constant(opCode.keys), time: uint, signingSeed: key, tokenKey: key }),
  fc.record({
    code: fc.constant(opCode.subscribe),
    number: uint,
    time: uint,
    id: text,
    target,
    pattern: fc.option(text),
    description: fc.option(text),
    leaseMs: uint,
    base: text,
    digest: text,
  }),
  fc.record({ code: fc.constant(opCode.unsubscribe), number: uint }),
  fc.record({
    code: fc.constant(opCode.link),
    number: uint,
    path: text,
    explicit: fc.boolean(),
    glob: fc.boolean(),
    streamId: uint,
    acked: fc.option(position),
  }),
  fc.record({ code: fc.constant(opCode.unlink), number: uint, path: text }),
  fc.record({ code: fc.constant(opCode.wake), number: uint, generation: uint, wakeId: text }),
  fc.record({ code: fc.constant(opCode.claim), number: uint, holder: text }),
  fc.record({
    code: fc.constant(opCode.ack),
    number: uint,
    acks: fc.array(fc.record({ path: text, record: uint, byte: uint }), { maxLength: 5 }),
  }),
  fc.record({ code: fc.constant(opCode.settle), number: uint }),
  fc.record({ code: fc.constant(opCode.generation), number: uint, generation: uint }),
  fc.record({ code: fc.constant(opCode.numbered), number: uint }),
);

test("J25 every op comes back as it was written", () => {
  const seen = new Set<number>();
  fc.assert(
    fc.property(ops, (op) => {
      seen.add(op.code);
      const { code, body } = changeOf(op);
      expect(opOf(code, body)).toEqual(op);
    }),
    { numRuns: 1000 },
  );
  expect(seen.size).toBe(Object.keys(opCode).length);
});

test("J31 a body cut short, made longer, or of arbitrary bytes is an op or journal_corrupt", () => {
  const read = (code: number, body: Uint8Array): string => {
    try {
      opOf(code, body);
      return "op";
    } catch (error) {
      return (error as ForebayError).code;
    }
  };
  fc.assert(
    fc.property(ops, fc.nat(), (op, at) => {
      const { code, body } = changeOf(op);
      expect(read(code, body.subarray(0, at % body.length))).toBe("journal_corrupt");
      expect(read(code, Buffer.concat([body, Buffer.of(0)]))).toBe("journal_corrupt");
    }),
  );
  fc.assert(
    fc.property(
      fc.integer({ min: 32, max: 47 }),
      fc.uint8Array({ maxLength: 80 }),
      (code, body) => {
        expect(["op", "journal_corrupt"]).toContain(read(code, body));
      },
    ),
    { numRuns: 1000 },
  );
  expect(read(41, Buffer.of(1))).toBe("journal_corrupt");
});
