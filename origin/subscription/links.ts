import { limits } from "../../shared/limits.ts";
import { isReservedPath } from "../../shared/protocol/mod.ts";
import type { StreamLife, Streams } from "../stream/mod.ts";
import { type LinkOp, type Op, opCode } from "./ops.ts";
import type { Link, Subscription, SubscriptionState } from "./state.ts";

/** Whether a stream at `path` belongs to the pattern. A subscription never follows the stream its own wakes go to. */
export function isMatch(
  { glob, target }: Pick<Subscription, "glob" | "target">,
  path: string,
): boolean {
  const own = target.kind === "pull-wake" && target.stream === path;
  return glob !== null && !own && !isReservedPath(path) && glob.matches(path);
}

/** The link of a stream that is followed from its present tail on: what is there already wakes nobody. */
export function linkAtTail(
  number: number,
  path: string,
  life: StreamLife | undefined,
  reasons: Pick<Link, "explicit" | "glob">,
): LinkOp {
  const acked = life === undefined ? null : { record: life.record, byte: life.byte };
  const { explicit, glob } = reasons;
  return { code: opCode.link, number, path, explicit, glob, streamId: life?.id ?? 0, acked };
}

/** What has become of the streams that are followed, and which new ones are to be. */
export class LinkKeeper {
  readonly #streams: Pick<Streams, "life" | "lives">;
  readonly #state: SubscriptionState;
  /** Matching streams that a limit kept out, by subscription. */
  readonly #unlinked: Map<number, number> = new Map();
  unlinkedTotal = 0;

  constructor(streams: Pick<Streams, "life" | "lives">, state: SubscriptionState) {
    this.#streams = streams;
    this.#state = state;
  }

  unlinkedOf({ number }: Subscription): number {
    return this.#unlinked.get(number) ?? 0;
  }

  forget({ number }: Subscription): void {
    this.#unlinked.delete(number);
  }

  /** The ops after a stream at `path` was created, changed or ended. */
  opsFor(path: string): Op[] {
    const life = this.#streams.life(path);
    const ops: Op[] = [];
    for (const subscription of this.#state.followers.get(path) ?? []) {
      const link = subscription.links.get(path);
      if (link !== undefined) {
        ops.push(...follow(subscription, link, life));
      }
    }
    return ops;
  }

  /** The ops that make every pattern follow the new stream. `planned` are links that are made but not applied yet. */
  opsForNew(life: StreamLife, planned: number): Op[] {
    const ops: Op[] = [];
    for (const subscription of this.#state.byId.values()) {
      const { number, links } = subscription;
      if (!links.has(life.path) && isMatch(subscription, life.path)) {
        if (this.#hasRoom(subscription, planned + ops.length)) {
          const reasons = { explicit: false, glob: true };
          ops.push({ ...linkAtTail(number, life.path, life, reasons), acked: null });
        } else {
          this.#unlinked.set(number, this.unlinkedOf(subscription) + 1);
          this.unlinkedTotal += 1;
        }
      }
    }
    return ops;
  }

  #hasRoom({ links }: Subscription, planned: number): boolean {
    return (
      links.size + planned < limits.subscriptionLinksMax &&
      this.#state.links + planned < limits.subscriptionLinksTotalMax
    );
  }
}

/** A cursor is good for one life of its path. A matched stream that ended is followed no more, a named one stays. */
function follow({ number }: Subscription, link: Link, life: StreamLife | undefined): Op[] {
  const { path, explicit, glob, streamId } = link;
  if ((life?.id ?? 0) === streamId) {
    return [];
  }
  if (life === undefined && !explicit) {
    return [{ code: opCode.unlink, number, path }];
  }
  return [
    { code: opCode.link, number, path, explicit, glob, streamId: life?.id ?? 0, acked: null },
  ];
}
