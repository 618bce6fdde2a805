import { expect, test } from "vitest";
import { lsn } from "../../../shared/ids/mod.ts";
import { changeOf, type Op, opCode, opOf } from "../../../origin/subscription/ops.ts";
import { snapshot } from "../../../origin/subscription/snapshot.ts";
import { SubscriptionState } from "../../../origin/subscription/state.ts";

const subscribe = (number: number, id: string, pattern: string | null): Op => ({
  code: opCode.subscribe,
  ...{ number, time: 5, id, pattern, description: pattern, leaseMs: 1000 + number },
  target:
    number % 2 === 0
      ? { kind: "webhook", url: "https://x.example/" }
      : { kind: "pull-wake", stream: "w" },
  ...{ base: "http://o.example", digest: `d${number}` },
});
const link = (number: number, path: string, record: number | null): Op => ({
  code: opCode.link,
  ...{ number, path, explicit: record === null, glob: true, streamId: 7 },
  acked: record === null ? null : { record, byte: record * 10 },
});

const history: Op[] = [
  {
    code: opCode.keys,
    time: 1,
    signingSeed: new Uint8Array(32).fill(3),
    tokenKey: new Uint8Array(32).fill(4),
  },
  subscribe(1, "gone", null),
  subscribe(2, "quiet", "a/*"),
  link(2, "a/b", 4),
  link(2, "a/c", null),
  { code: opCode.wake, number: 2, generation: 1, wakeId: "w1" },
  { code: opCode.ack, number: 2, acks: [{ path: "a/b", record: 6, byte: 61 }] },
  { code: opCode.settle, number: 2 },
  subscribe(3, "woken", null),
  link(3, "s", null),
  { code: opCode.wake, number: 3, generation: 1, wakeId: "w2" },
  { code: opCode.settle, number: 3 },
  { code: opCode.wake, number: 3, generation: 2, wakeId: "w3" },
  { code: opCode.claim, number: 3, holder: "me" },
  subscribe(4, "offered", null),
  { code: opCode.wake, number: 4, generation: 1, wakeId: "w4" },
  subscribe(5, "last", null),
  { code: opCode.unsubscribe, number: 5 },
  { code: opCode.unsubscribe, number: 1 },
];

/** All but LSNs, which a checkpoint has behind it. */
function image(state: SubscriptionState): unknown {
  const all = [...state.byNumber.values()].map(({ glob, wake, links, ...kept }) => ({
    ...kept,
    lsn: 0,
    glob: glob?.text,
    links: [...links],
    wake: wake && { ...wake, lsn: 0 },
  }));
  const followers = [...state.followers].map(([path, who]) => [path, [...who].map(({ id }) => id)]);
  const { lastNumber, links, keys } = state;
  return { all, followers, lastNumber, links, token: keys?.token(2, 1), kid: keys?.jwk.kid };
}

test("a snapshot makes of an empty state the one it was taken of, at every point of a history", () => {
  const state = new SubscriptionState();
  history.forEach((op, i) => {
    state.apply(op, lsn(i + 1));
    const again = new SubscriptionState();
    for (const each of snapshot(state)) {
      const { code, body } = changeOf(each);
      again.apply(opOf(code, body), lsn(0));
    }
    expect(image(again)).toEqual(image(state));
  });
  expect(state.byNumber.size).toBe(3);
});
