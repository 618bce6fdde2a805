import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { beforeEach, expect, test } from "vitest";
import { DrainRate } from "../../../edge/outbox/drainRate.ts";
import type { OutboxEnv } from "../../../edge/outbox/mod.ts";
import { LinkOrigin } from "./linkOrigin.ts";
import {
  again,
  append,
  checkedStatus,
  drained,
  freshOutbox,
  request,
  type Stub,
} from "./outboxUnderTest.ts";

let origin: LinkOrigin;
let open: () => void;
beforeEach(() => {
  origin = new LinkOrigin();
  origin.gate = new Promise((resolve) => {
    open = resolve;
  });
  origin.install();
});

/** The variables this object was made with, as if the Worker had been deployed with these marks. */
async function setMarks(stub: Stub, soft: string, hard: string): Promise<void> {
  await runInDurableObject(stub, (instance) => {
    const withEnv = instance as unknown as { env: OutboxEnv };
    withEnv.env = { ...withEnv.env, OUTBOX_SOFT_BYTES: soft, OUTBOX_HARD_BYTES: hard };
  });
}

const big = (stream = "s") => request({ stream, records: [new Uint8Array(10_000).fill(0x31)] });

test("F7 above the soft mark 429, beyond the hard one 503, each with Retry-After; below it goes on", async () => {
  const stub = freshOutbox();
  await setMarks(stub, "25000", "40000");
  expect((await append(stub, big())).answers).toMatchObject([{ kind: "accepted" }]);
  expect((await append(stub, big(), big())).answers).toMatchObject([
    { kind: "accepted" },
    { kind: "accepted" },
  ]);
  const { answers } = await append(stub, request(), big("x"));
  const { bytes } = await checkedStatus(stub);
  expect(answers).toEqual([
    {
      kind: "refused",
      code: "outbox_slow",
      message: expect.stringMatching(
        new RegExp(
          `^${bytes} bytes wait for the origin, \\d+ more are too many: the mark is 25000$`,
        ),
      ),
      retryAfterSeconds: 60,
    },
    {
      kind: "refused",
      code: "outbox_full",
      message: expect.stringContaining("the mark is 40000"),
      retryAfterSeconds: 60,
    },
  ]);
  expect((await checkedStatus(stub)).ledger).toMatchObject({ accepted: 3, refused: 2 });
  // Trimming works when full, and then there is room again.
  open();
  await drained(stub);
  expect((await append(stub, big())).answers).toMatchObject([{ kind: "accepted" }]);
});

test("F7 one append is judged request by request: what still fits is taken", async () => {
  const stub = freshOutbox();
  await setMarks(stub, "15000", "100000");
  const { answers } = await append(stub, big(), big(), big());
  expect(answers).toMatchObject([
    { kind: "accepted" },
    { kind: "accepted" },
    { kind: "refused", code: "outbox_slow" },
  ]);
  expect((await checkedStatus(stub)).bytes).toBeLessThan(100_000);
});

test("F7 a full outbox still answers duplicates as it answered them before", async () => {
  const stub = freshOutbox();
  const p = request({ producer: { id: "p", epoch: 0, seq: 0 } });
  await append(stub, p, request({ batchId: "b" }));
  await setMarks(stub, "1", "2");
  expect((await append(stub, p, request({ batchId: "b" }), request())).answers).toMatchObject([
    { kind: "accepted", deduplicated: true },
    { kind: "accepted", deduplicated: true },
    { kind: "refused", code: "outbox_full" },
  ]);
});

test("F7 a producer refused by a mark loses nothing: its seq is still the next", async () => {
  const stub = freshOutbox();
  await setMarks(stub, "1", "1000000");
  const p = (seq: number) => request({ producer: { id: "p", epoch: 0, seq } });
  expect((await append(stub, p(0), p(1), p(2))).answers).toMatchObject([
    { kind: "accepted" },
    { code: "outbox_slow" },
    { code: "producer_gap", headers: { "producer-expected-seq": "1" } },
  ]);
  open();
  await drained(stub);
  expect((await append(stub, p(1))).answers).toMatchObject([{ kind: "accepted", fsn: 2 }]);
});

test("F19 a backlog above marks set lower since starts and drains", async () => {
  const stub = freshOutbox();
  await append(stub, big(), big(), big());
  open();
  await evictDurableObject(stub);
  const later = again(stub);
  await setMarks(later, "1000", "2000");
  expect((await drained(later)).ledger).toMatchObject({ accepted: 3, acknowledged: 3 });
});

test.each([
  ["many", "100"],
  ["-5", "100"],
  ["100", "100"],
])("F18 marks %s and %s are refused with the value and touch no data", async (soft, hard) => {
  const stub = freshOutbox();
  await append(stub, request());
  await setMarks(stub, soft, hard);
  expect(await append(stub, request(), request())).toEqual({
    epoch: "",
    answers: Array(2).fill({
      kind: "refused",
      code: "config_invalid",
      message: `OUTBOX_SOFT_BYTES (${soft}) and OUTBOX_HARD_BYTES (${hard}) must be numbers of bytes, the first below the second`,
    }),
  });
  expect((await checkedStatus(stub)).ledger).toMatchObject({
    accepted: 1,
    inFrames: 1,
    refused: 0,
  });
});

test("the drain rate is honest within 2x from the first POST on, fades, and is 0 when nothing drains", () => {
  const rate = new DrainRate();
  expect(rate.secondsFor(1_000_000, 0)).toBe(60);
  // 100,000 bytes every 200 ms: 500,000 a second.
  for (let now = 200; now <= 20_000; now += 200) {
    rate.trimmed(100_000, now, 200);
    expect(rate.perSecond(now)).toBeGreaterThan(250_000);
    expect(rate.perSecond(now)).toBeLessThan(1_000_000);
  }
  expect(rate.perSecond(20_000)).toBeCloseTo(500_000, -4);
  expect(rate.secondsFor(5_000_000, 20_000)).toBe(10);
  expect(rate.secondsFor(1, 20_000)).toBe(1);
  // A drain that has stopped is trusted less and less.
  expect(rate.perSecond(50_000)).toBeLessThan(200_000);
  expect(rate.secondsFor(1_000_000_000, 50_000)).toBe(3600);
  expect(rate.secondsFor(1_000_000, 20_000 + 1_000_000)).toBe(60);
});
