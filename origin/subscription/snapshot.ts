import { type Op, opCode } from "./ops.ts";
import type { Subscription, SubscriptionState } from "./state.ts";

/** Ops that make of an empty state what this one is. */
export function* snapshot(state: SubscriptionState): Generator<Op> {
  const { keys } = state;
  if (keys !== null) {
    const { signingSeed, tokenKey } = keys;
    yield { code: opCode.keys, time: 0, signingSeed, tokenKey };
  }
  for (const subscription of state.byNumber.values()) {
    yield* opsOf(subscription);
  }
  yield { code: opCode.numbered, number: state.lastNumber };
}

function* opsOf(subscription: Subscription): Generator<Op> {
  const { number, glob, links, generation, wake } = subscription;
  yield { ...subscription, code: opCode.subscribe, pattern: glob?.text ?? null };
  for (const link of links.values()) {
    yield { code: opCode.link, number, ...link };
  }
  // A wake opens the generation that follows the last one.
  const before = wake === null ? generation : generation - 1;
  yield { code: opCode.generation, number, generation: before };
  if (wake !== null) {
    yield { code: opCode.wake, number, generation, wakeId: wake.id };
    if (wake.holder !== null) {
      yield { code: opCode.claim, number, holder: wake.holder };
    }
  }
}
