import { invariant } from "../../shared/errors/mod.ts";

/** One ring's part of a budget. */
export interface BudgetMember {
  readonly heldBytes: number;
  readonly registered: boolean;
  /** Whether `charge` would take one more now. */
  affords(): boolean;
  /**
   * Takes one segment more. Below its working set a member is served past the cap, so that a spent budget slows a
   * ring down and never stops it.
   */
  charge(): boolean;
  /** Takes segments that are there already, from an earlier process: whatever the cap says. */
  adopt(segments: number): void;
  /** Gives segments back; nothing after `deregister`, which gave back all. */
  release(segments: number): void;
  /** Gives back everything. What is installed later finds `registered` false and has no owner to charge. */
  deregister(): void;
}

/**
 * Bytes of segments this process may hold, shared by its rings. Every held byte has one owner. Invariant: what is held
 * is the sum over the members, and at most the cap plus one working set per member, but for what was adopted.
 */
export class SegmentBudget {
  readonly capBytes: number;
  readonly #members = new Set<BudgetMember>();
  #heldBytes = 0;

  constructor(capBytes: number) {
    this.capBytes = capBytes;
  }

  get heldBytes(): number {
    return this.#heldBytes;
  }

  get members(): number {
    return this.#members.size;
  }

  /** More is held than the cap allows. */
  get overdrawn(): boolean {
    return this.#heldBytes > this.capBytes;
  }

  /**
   * @param segmentBytes size of the ring's segments
   * @param workingSet segments without which the ring cannot go on
   */
  register(segmentBytes: number, workingSet = 2): BudgetMember {
    let held = 0;
    const take = (segments: number): void => {
      invariant(this.#members.has(member), "only a registered ring is charged");
      held += segments;
      this.#heldBytes += segments * segmentBytes;
    };
    const giveBack = (segments: number): void => {
      invariant(segments >= 0 && segments <= held, "a ring gives back what it holds");
      held -= segments;
      this.#heldBytes -= segments * segmentBytes;
    };
    const members = this.#members;
    const member: BudgetMember = {
      get heldBytes() {
        return held * segmentBytes;
      },
      get registered() {
        return members.has(member);
      },
      affords: () => held < workingSet || this.#heldBytes + segmentBytes <= this.capBytes,
      charge: () => {
        if (!member.affords()) {
          return false;
        }
        take(1);
        return true;
      },
      adopt: take,
      release: (segments) => {
        if (member.registered) {
          giveBack(segments);
        }
      },
      deregister: () => {
        if (members.delete(member)) {
          giveBack(held);
          this.#assertSum();
        }
      },
    };
    members.add(member);
    return member;
  }

  #assertSum(): void {
    let sum = 0;
    for (const { heldBytes } of this.#members) {
      sum += heldBytes;
    }
    invariant(sum === this.#heldBytes, "every held byte of the budget has one owner");
  }
}
