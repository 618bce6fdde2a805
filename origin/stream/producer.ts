/*
 * What a stream remembers of one producer, and how a seq is judged by it.
 *
 * Of the newest producer epoch the highest stored seq is kept, and a window of 64 bits below it:
 *
 *     seq    highest-63  …  highest-32 | highest-31  …  highest-1  highest
 *     bit     high.31    …    high.0   |   low.31    …    low.1     low.0      set = stored
 *
 * and `complete`: every seq ≤ complete is stored (-1: none known). A producer that only talks to the origin has
 * complete = highest. Outbox frames may leave holes (two outboxes of one producer, the second drains first): a hole
 * within the window is filled when it comes, one that fell below it is never called a duplicate.
 */
export interface ProducerState {
  epoch: number;
  highest: number;
  complete: number;
  low: number;
  high: number;
  /** Record time of its newest request. */
  usedAt: number;
}

export const windowBits = 64;

/**
 * `fresh`: store it. `duplicate`: stored before. `stale`: an older epoch. `gap`: not the next seq. `badStart`: a new
 * epoch not at 0. `tooOld`: below the window, and not known to be stored.
 */
export type SeqJudgement = "fresh" | "duplicate" | "stale" | "gap" | "badStart" | "tooOld";

/** A request from the producer itself: the protocol's rule, last + 1 (Durable Streams §5.2.1), and holes. */
export function judgeDirect(
  state: ProducerState | undefined,
  epoch: number,
  seq: number,
): SeqJudgement {
  if (state === undefined) {
    return seq === 0 ? "fresh" : "gap";
  }
  if (epoch !== state.epoch) {
    return epoch < state.epoch ? "stale" : seq === 0 ? "fresh" : "badStart";
  }
  if (seq > state.highest) {
    return seq === state.highest + 1 ? "fresh" : "gap";
  }
  return judgePast(state, seq);
}

/**
 * A request out of an outbox frame. The outbox has checked that its seqs are dense, so one above the highest is
 * taken even with a gap: the requests between lie in another outbox.
 */
export function judgeForwarded(
  state: ProducerState | undefined,
  epoch: number,
  seq: number,
): SeqJudgement {
  if (state === undefined || epoch > state.epoch) {
    return "fresh";
  }
  if (epoch < state.epoch) {
    return "stale";
  }
  if (seq > state.highest) {
    return "fresh";
  }
  return state.highest - seq >= windowBits ? "tooOld" : judgePast(state, seq);
}

function judgePast(state: ProducerState, seq: number): SeqJudgement {
  if (seq <= state.complete) {
    return "duplicate";
  }
  const distance = state.highest - seq;
  if (distance >= windowBits) {
    return "tooOld";
  }
  return isSet(state, distance) ? "duplicate" : "fresh";
}

function isSet(state: ProducerState, distance: number): boolean {
  const word = distance < 32 ? state.low : state.high;
  return ((word >>> (distance & 31)) & 1) === 1;
}

/** The state after a request judged `fresh`; made when there was none. */
export function admitSeq(
  state: ProducerState | undefined,
  tag: { readonly epoch: number; readonly seq: number },
  time: number,
): ProducerState {
  const { epoch, seq } = tag;
  if (state === undefined) {
    const complete = seq === 0 ? 0 : -1;
    return { epoch, highest: seq, complete, low: 1, high: 0, usedAt: time };
  }
  state.usedAt = time;
  if (epoch !== state.epoch) {
    state.epoch = epoch;
    state.highest = seq;
    state.complete = seq === 0 ? 0 : -1;
    state.low = 1;
    state.high = 0;
    return state;
  }
  if (seq > state.highest) {
    slide(state, seq - state.highest);
    state.highest = seq;
    state.low |= 1;
  } else {
    const distance = state.highest - seq;
    if (distance < 32) {
      state.low |= 1 << distance;
    } else {
      state.high |= 1 << (distance & 31);
    }
  }
  while (state.complete < state.highest && holds(state, state.complete + 1)) {
    state.complete += 1;
  }
  return state;
}

function holds(state: ProducerState, seq: number): boolean {
  const distance = state.highest - seq;
  return distance < windowBits && isSet(state, distance);
}

function slide(state: ProducerState, by: number): void {
  if (by >= windowBits) {
    state.low = 0;
    state.high = 0;
  } else if (by >= 32) {
    state.high = state.low << (by - 32);
    state.low = 0;
  } else {
    state.high = (state.high << by) | (state.low >>> (32 - by));
    state.low <<= by;
  }
}
