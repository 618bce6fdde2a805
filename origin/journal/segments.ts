import { invariant } from "../../shared/errors/mod.ts";
import type { SegmentHeader } from "./segmentHeader.ts";

/** A segment that ends with SEAL. */
export interface SealedSegment {
  readonly header: SegmentHeader;
  /** The last LSN of the journal when it was sealed. */
  readonly lastLsn: number;
}

/** A file whose entries are trimmed. */
interface BelowHead {
  readonly generation: number;
  /** Undefined: an earlier process trimmed it. */
  readonly header: SegmentHeader | undefined;
}

/** What recovery found of a ring. */
export interface FoundSegments {
  /** Generations below the head whose files are still there, ascending. */
  readonly below: readonly number[];
  readonly sealed: readonly SealedSegment[];
  /** Segments made ahead, in order of generation. */
  readonly spares: readonly SegmentHeader[];
  /** Generation of the first segment held. */
  readonly head: number;
  /** The highest segment generation there is; 0 for none. */
  readonly newest: number;
  /** A batch was accepted in the active segment. */
  readonly activeUsed: boolean;
}

/**
 * The segments before the active one, and who reads them. A file's way: sealed → below the head (its entries are trimmed,
 * the manifest says so) → recycled or unlinked.
 */
export class SegmentLists {
  readonly #sealed: SealedSegment[];
  readonly #below: BelowHead[];
  readonly #pins = new Map<number, number>();
  /** A batch of the active segment is durable: without one nothing would say where the chain goes on. */
  #activeUsed: boolean;
  #head: number;

  constructor(found: FoundSegments) {
    this.#sealed = [...found.sealed];
    this.#below = found.below.map((generation) => ({ generation, header: undefined }));
    this.#activeUsed = found.activeUsed;
    this.#head = found.head;
  }

  get sealed(): readonly SealedSegment[] {
    return this.#sealed;
  }

  /** How many files are below the head. */
  get below(): number {
    return this.#below.length;
  }

  /** The segment after `generation`, sealed or trimmed and still there because a reader is not through with it. */
  after(generation: number): SegmentHeader | undefined {
    const next = generation + 1;
    return (
      this.#below.find((file) => file.generation === next)?.header ??
      this.#sealed.find(({ header }) => header.generation === next)?.header
    );
  }

  get head(): number {
    return this.#head;
  }

  /** The active segment became the newest sealed one. */
  seal(segment: SealedSegment): void {
    this.#sealed.push(segment);
    this.#activeUsed = false;
  }

  /** True when that makes a difference to what is freeable. */
  advanced(durable: number): boolean {
    if (this.#activeUsed || durable <= (this.#sealed.at(-1)?.lastLsn ?? 0)) {
      return false;
    }
    this.#activeUsed = true;
    return this.#sealed.length > 0;
  }

  /**
   * Sealed segments without an entry above `mark`, oldest first. The newest one stays until its successor holds a batch:
   * recovery learns from the first batch it finds where the journal stands.
   */
  freeable(mark: number): readonly SealedSegment[] {
    const upTo = this.#activeUsed ? this.#sealed.length : this.#sealed.length - 1;
    let count = 0;
    while (count < upTo && (this.#sealed[count]?.lastLsn ?? Infinity) <= mark) {
      count += 1;
    }
    return this.#sealed.slice(0, count);
  }

  /** The first `count` sealed segments are below the head from now on. */
  bury(count: number): void {
    for (const { header } of this.#sealed.splice(0, count)) {
      this.#below.push({ generation: header.generation, header });
      this.#head = header.generation + 1;
    }
  }

  /** The oldest file below the head, unless somebody reads it: who stands in it comes to the next ones, too. */
  get removable(): number | undefined {
    const oldest = this.#below[0]?.generation;
    return oldest === undefined || this.#pins.has(oldest) ? undefined : oldest;
  }

  /** The oldest file below the head has left its name. */
  removed(): void {
    this.#below.shift();
  }

  /** Its file stays as it is until `unpin`. */
  pin(generation: number): void {
    this.#pins.set(generation, (this.#pins.get(generation) ?? 0) + 1);
  }

  unpin(generation: number): void {
    const left = (this.#pins.get(generation) ?? 0) - 1;
    invariant(left >= 0, "a segment is let go as often as it was held");
    if (left === 0) {
      this.#pins.delete(generation);
    } else {
      this.#pins.set(generation, left);
    }
  }
}
