import { ByteReader, ByteWriter } from "./bytes.ts";
import type { FrozenState, StateEntry } from "./types.ts";

/*
 * The state part of a run: entries sorted by kind, then key. FORMAT.md draws it.
 */

export function writeState(to: ByteWriter, { kind, key, value }: StateEntry): void {
  to.u8(kind);
  to.f64(key);
  if (value === null) {
    to.u32(0);
  } else {
    to.u32(value.length + 1);
    to.bytes(value);
  }
}

/** All of `frozen`; `turn` is awaited between its pieces. */
export async function encodeState(
  frozen: FrozenState,
  turn: () => Promise<void>,
): Promise<Uint8Array> {
  const to = new ByteWriter();
  for (let piece = frozen.next(); piece !== null; piece = frozen.next()) {
    for (const entry of piece) {
      writeState(to, entry);
    }
    await turn();
  }
  return to.finish();
}

/** The entries of one state part, in order. */
class StateCursor {
  readonly #from: ByteReader;
  current: StateEntry | null = null;

  constructor(bytes: Uint8Array, what: string) {
    this.#from = new ByteReader(bytes, what);
    this.advance();
  }

  advance(): void {
    const from = this.#from;
    if (from.done) {
      this.current = null;
      return;
    }
    const kind = from.u8();
    const key = from.f64();
    const length = from.u32();
    this.current = { kind, key, value: length === 0 ? null : from.bytes(length - 1) };
  }
}

const isBefore = (a: StateEntry, b: StateEntry): boolean =>
  a.kind < b.kind || (a.kind === b.kind && a.key < b.key);

/**
 * Of each key its newest entry, in order; values are views.
 *
 * @param parts oldest first
 * @throws ForebayError `store_corrupt`
 */
export function* mergeState(
  parts: readonly { readonly bytes: Uint8Array; readonly what: string }[],
): Generator<StateEntry> {
  // Newest first: of equal keys the one met first counts.
  const cursors = parts.map(({ bytes, what }) => new StateCursor(bytes, what)).toReversed();
  for (;;) {
    let least: StateEntry | null = null;
    for (const { current } of cursors) {
      if (current !== null && (least === null || isBefore(current, least))) {
        least = current;
      }
    }
    if (least === null) {
      return;
    }
    for (const cursor of cursors) {
      const { current } = cursor;
      if (current !== null && current.kind === least.kind && current.key === least.key) {
        cursor.advance();
      }
    }
    yield least;
  }
}
