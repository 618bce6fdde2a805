import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ForebayError } from "../../../shared/errors/mod.ts";
import { streamId } from "../../../shared/ids/mod.ts";
import { EntryWriter } from "../../../origin/stream/bytes.ts";
import { beginEntry, decodeEntry, type Op, writeOp } from "../../../origin/stream/entry.ts";

const nat = fc.maxSafeNat();
const time = fc.integer({ min: 0, max: 2 ** 48 - 1 });
const id = nat.map((n) => streamId(n));
const name = fc.string({ unit: "grapheme", maxLength: 300 });

const anyOp: fc.Arbitrary<Op> = fc.oneof(
  fc.record({
    kind: fc.constant(1 as const),
    id,
    path: name,
    fork: fc.option(
      fc.record({
        source: id,
        offset: fc.record({ record: nat, byte: nat }),
        subOffset: nat,
        records: nat,
        bytes: nat,
      }),
    ),
    contentType: name,
    ttlSeconds: fc.option(nat),
    expiresAt: fc.option(fc.record({ text: name, ms: time })),
    createdAt: time,
    closed: fc.boolean(),
  }),
  fc.record({
    kind: fc.constant(2 as const),
    id,
    time,
    producer: fc.option(fc.record({ id: name, epoch: nat, seq: nat })),
    streamSeq: fc.option(name),
    acceptedAt: fc.option(time),
    records: fc.array(fc.uint8Array({ maxLength: 400 }), { maxLength: 8 }),
    close: fc.boolean(),
  }),
  fc.record({ kind: fc.constantFrom(3 as const, 4 as const), id, time }),
  fc.record({ kind: fc.constant(5 as const), id, time }),
  fc.record({ kind: fc.constant(6 as const), buffer: name, epoch: name, boot: nat }),
  fc.record({
    kind: fc.constant(7 as const),
    buffer: name,
    epoch: name,
    boot: nat,
    fsn: nat,
    deduplicated: nat,
  }),
  fc.record({ kind: fc.constant(8 as const), records: nat }),
);

function encode(writer: EntryWriter, ops: readonly Op[]): Uint8Array {
  beginEntry(writer);
  for (const op of ops) {
    writeOp(writer, op);
  }
  const length = writer.length;
  const whole = Buffer.concat(writer.parts());
  expect(whole.length).toBe(length);
  return new Uint8Array(whole);
}

const plain = (ops: readonly Op[]): unknown =>
  JSON.parse(
    JSON.stringify(ops, (_, value: unknown) =>
      value instanceof Uint8Array ? Buffer.from(value).toString("hex") : value,
    ),
  );

describe("the entry codec", () => {
  test("gives every list of ops back, with one writer used again and again", () => {
    const writer = new EntryWriter();
    fc.assert(
      fc.property(fc.array(anyOp, { minLength: 1, maxLength: 6 }), (ops) => {
        expect(plain(decodeEntry(encode(writer, ops)))).toEqual(plain(ops));
      }),
      { numRuns: 500 },
    );
  });

  test("writes an append of one body as a head and the body itself, not a copy", () => {
    const writer = new EntryWriter();
    const body = new Uint8Array([1, 2, 3]);
    beginEntry(writer);
    writeOp(writer, {
      kind: 2,
      id: streamId(300),
      time: 0x0102030405,
      producer: null,
      streamSeq: null,
      acceptedAt: null,
      records: [body],
      close: false,
    });
    const [head, bytes, ...rest] = writer.parts();
    expect(bytes).toBe(body);
    expect(rest).toEqual([]);
    // version, kind, flags, id 300, time, one record of three bytes
    expect([...(head ?? [])]).toEqual([1, 2, 0, 0xac, 0x02, 5, 4, 3, 2, 1, 0, 1, 3]);
  });

  test("writes a creation without a fork as ever, and a fork behind it", () => {
    const made = { kind: 1, id: streamId(2), createdAt: 5, path: "p", contentType: "t" } as const;
    const plainly = { ...made, ttlSeconds: 9, expiresAt: null, closed: false };
    const offset = { record: 1, byte: 300 };
    const fork = { source: streamId(1), offset, subOffset: 2, records: 2, bytes: 302 };
    // version, kind, flags, id, time, path, type, TTL
    const before = [1, 1, 1, 2, 5, 0, 0, 0, 0, 0, 1, 0x70, 1, 0x74, 9];
    const writer = new EntryWriter();
    expect([...encode(writer, [{ ...plainly, fork: null }])]).toEqual(before);
    before[2] = 1 | 8;
    const edge = [1, 1, 0xac, 0x02, 2, 2, 0xae, 0x02];
    expect([...encode(writer, [{ ...plainly, fork }])]).toEqual([...before, ...edge]);
  });

  test("outgrowing its scratch, the writer forgets what it kept of the old one", () => {
    const writer = new EntryWriter();
    const touch = (at: number): Op => ({ kind: 5, id: streamId(1), time: at });
    const hello = (buffer: string): Op => ({ kind: 6, buffer, epoch: "e", boot: 1 });
    for (const ops of [[touch(1)], [hello("x".repeat(10_000))], [touch(2)], [touch(3), touch(4)]]) {
      expect(decodeEntry(encode(writer, ops))).toEqual(ops);
    }
  });

  test("J31 a cut entry is journal_corrupt at every length, never an overrun", () => {
    const writer = new EntryWriter();
    fc.assert(
      fc.property(anyOp, (op) => {
        const whole = encode(writer, [op]);
        for (let length = 0; length < whole.length; length++) {
          expect(() => decodeEntry(whole.subarray(0, length))).toThrow(
            expect.objectContaining({ code: "journal_corrupt" }),
          );
        }
      }),
      { numRuns: 60 },
    );
  });

  test("J31 arbitrary bytes are ops or a catalogue error", () => {
    const start = fc.constantFrom([1], [1, 2], [1, 1], [1, 2, 1], [1, 6], [1, 7]);
    fc.assert(
      fc.property(start, fc.uint8Array({ maxLength: 60 }), (head, tail) => {
        try {
          expect(decodeEntry(new Uint8Array([...head, ...tail])).length).toBeGreaterThan(0);
        } catch (error) {
          expect(error).toBeInstanceOf(ForebayError);
          expect(error).toMatchObject({ code: "journal_corrupt" });
        }
      }),
      { numRuns: 3000 },
    );
  });

  test("an entry of another version is not called damaged", () => {
    expect(() => decodeEntry(new Uint8Array([2, 5, 1, 0, 0, 0, 0, 0, 0]))).toThrow(
      expect.objectContaining({ code: "format_unsupported" }),
    );
  });

  test("a number that an entry cannot hold is an assertion, before anything is written", () => {
    const writer = new EntryWriter();
    beginEntry(writer);
    const hello = { kind: 6, buffer: "b", epoch: "e" } as const;
    for (const boot of [-1, 0.5, Number.NaN, 2 ** 53]) {
      expect(() => writeOp(writer, { ...hello, boot })).toThrow("invariant broken");
    }
  });
});
