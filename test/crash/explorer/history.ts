import type { Entry, Journal } from "../../../origin/journal/mod.ts";
import type { Opened } from "../../origin/journal/harness.ts";
import { crc32c } from "../../../origin/native/mod.ts";

/** An entry as one number: its checksum and its length. */
export const mark = (bytes: Uint8Array): number =>
  crc32c(bytes, 0, bytes.length, 0) * 2 ** 21 + bytes.length;

/** What a start found. */
export interface Found {
  readonly firstLsn: number;
  readonly marks: readonly number[];
  readonly durable: number;
  readonly trimmed: number;
}

export function foundBy(opened: Opened): Found {
  const { journal, firstLsn, replayed } = opened;
  const { durable, trimmed } = journal;
  return { firstLsn, marks: replayed.map(mark), durable, trimmed };
}

/**
 * What the owner of one journal knows, over all its lives: what it appended, what was acknowledged, what it gave up. A
 * start must give each acknowledged entry exactly once at its LSN, each unknown one whole or not at all and with no gap
 * before it; the durable end never regresses, and nothing is trimmed that was not given up.
 */
export class History {
  /** Marks by LSN − 1. */
  readonly appended: number[] = [];
  acknowledged = 0;
  givenUp = 0;
  trimmed = 0;

  append(lsn: number, bytes: Uint8Array): void {
    this.appended.push(mark(bytes));
    if (lsn !== this.appended.length) {
      throw new Error(`entry ${this.appended.length} got LSN ${lsn}`);
    }
  }

  giveUp(lsn: number): void {
    this.givenUp = Math.max(this.givenUp, lsn);
  }

  observe({ durable, trimmed, reserved }: Journal): void {
    if (durable < this.acknowledged || trimmed < this.trimmed || durable > reserved) {
      throw new Error(
        `a mark fell: durable ${durable} of ${reserved} after ${this.acknowledged}, trimmed ${trimmed} after ${this.trimmed}`,
      );
    }
    this.acknowledged = durable;
    this.trimmed = trimmed;
  }

  /** @throws Error saying what was promised and is not so */
  check(found: Found): void {
    const { firstLsn, marks, durable, trimmed } = found;
    const expected = this.appended.slice(trimmed, durable);
    const holds =
      durable >= this.acknowledged &&
      durable <= this.appended.length &&
      trimmed >= this.trimmed &&
      trimmed <= this.givenUp &&
      firstLsn === (expected.length === 0 ? 0 : trimmed + 1) &&
      marks.length === expected.length &&
      marks.every((each, i) => each === expected[i]);
    if (!holds) {
      const { acknowledged, givenUp, appended } = this;
      throw new Error(
        `found ${JSON.stringify(found)}, promised ${JSON.stringify({ acknowledged, givenUp, trimmed: this.trimmed, appended })}`,
      );
    }
  }

  /** What was read back is what was appended, from the first entry above `trimmed` to the end. */
  checkRead(trimmed: number, entries: readonly Entry[]): void {
    const read = entries.map(({ lsn, bytes }) => `${lsn} ${mark(bytes)}`).join();
    const appended = this.appended.slice(trimmed).map((each, i) => `${trimmed + i + 1} ${each}`);
    if (read !== appended.join()) {
      throw new Error(`read [${read}] where [${appended.join()}] was appended`);
    }
  }

  /** What a start gave is served from here on; the rest of the life before is gone for good. */
  goOn(found: Found): void {
    this.check(found);
    this.appended.splice(found.durable);
    this.acknowledged = found.durable;
    this.trimmed = found.trimmed;
  }

  /** For a branch of this history that another crash began. */
  copy(): History {
    const copy = new History();
    copy.appended.push(...this.appended);
    copy.acknowledged = this.acknowledged;
    copy.givenUp = this.givenUp;
    copy.trimmed = this.trimmed;
    return copy;
  }
}
