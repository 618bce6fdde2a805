import { limits } from "../../shared/limits.ts";
import { formatOffset } from "../../shared/protocol/mod.ts";
import type { Streams } from "../stream/mod.ts";
import type { Link, Subscription } from "./state.ts";

/** One followed stream as a wake tells of it. Only what is durable is told. */
export interface Told {
  readonly link: Link;
  /** 0 when there is no stream at the path. */
  readonly streamId: number;
  readonly record: number;
  readonly byte: number;
  readonly pending: boolean;
}

/** The form of it in webhooks and claims. */
export interface ToldJson {
  readonly path: string;
  readonly link_type: "explicit" | "glob";
  readonly acked_offset: string;
  readonly tail_offset: string;
  readonly has_pending: boolean;
}

type Lives = Pick<Streams, "life">;

function look(streams: Lives, link: Link): Told {
  const life = streams.life(link.path);
  if (life === undefined) {
    return { link, streamId: 0, record: 0, byte: 0, pending: false };
  }
  const acked = life.id === link.streamId ? (link.acked?.record ?? 0) : 0;
  return {
    link,
    streamId: life.id,
    record: life.durableRecord,
    byte: life.durableByte,
    pending: life.durableRecord > acked,
  };
}

/** Whether there is something durable behind the cursor of this one link. */
export function isPending(streams: Lives, link: Link): boolean {
  return look(streams, link).pending;
}

/** The path of a stream with something pending, or null. */
export function firstPending(streams: Lives, { links }: Subscription): string | null {
  for (const link of links.values()) {
    if (isPending(streams, link)) {
      return link.path;
    }
  }
  return null;
}

/** What a wake tells: at most `wakeStreamsMax` streams, those with something pending first. */
export function toldOf(streams: Lives, { links }: Subscription): Told[] {
  const pending: Told[] = [];
  const rest: Told[] = [];
  for (const link of links.values()) {
    const told = look(streams, link);
    (told.pending ? pending : rest).push(told);
    if (pending.length === limits.wakeStreamsMax) {
      break;
    }
  }
  return pending.concat(rest.slice(0, limits.wakeStreamsMax - pending.length));
}

export function toldJson({ link, record, byte, pending }: Told): ToldJson {
  return {
    path: link.path,
    link_type: linkType(link),
    acked_offset: ackedOffset(link),
    tail_offset: formatOffset(record, byte),
    has_pending: pending,
  };
}

/** A stream that is named and matched is an explicit one. */
export function linkType({ explicit }: Link): "explicit" | "glob" {
  return explicit ? "explicit" : "glob";
}

export function ackedOffset({ acked }: Link): string {
  return acked === null ? "-1" : formatOffset(acked.record, acked.byte);
}
