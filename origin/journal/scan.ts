import { crc32c } from "../native/mod.ts";
import { blockBytes } from "../storage/mod.ts";
import { lsn } from "../../shared/ids/mod.ts";
import {
  chainBreak,
  chainStart,
  decodeBatchHeader,
  type BatchHeader,
  type ChainEnd,
} from "./batchHeader.ts";
import { corrupt } from "./damage.ts";
import {
  batchFlag,
  batchHeaderBytes,
  crcText,
  entryHeaderBytes,
  padded,
  viewOf,
} from "./layout.ts";
import type { SegmentHeader } from "./segmentHeader.ts";
import type { SegmentReader } from "./segmentReader.ts";
import type { Replay } from "./types.ts";

export interface ScanResult {
  /** The chain after the last accepted batch. */
  readonly chain: ChainEnd;
  /** Where the next batch goes, or would have to be. */
  readonly position: number;
  readonly sealed: boolean;
  /** Batches accepted in this segment, SEAL counted. */
  readonly batches: number;
  /** Why the chain ends at `position`; "" when sealed. */
  readonly why: string;
}

/** What a scan tells of each batch it accepts, before its entries are replayed. */
export type BatchSeen = (header: BatchHeader, position: number) => void;

/**
 * Accepts batch after batch from the start of a segment and replays their entries.
 *
 * @param from undefined: what was before is trimmed, and the first batch says where the chain stands
 */
export async function scanSegment(
  reader: SegmentReader,
  segment: SegmentHeader,
  from: ChainEnd | undefined,
  told: { readonly replay: Replay; readonly onBatch?: BatchSeen },
): Promise<ScanResult> {
  let chain = from;
  let position = blockBytes;
  for (let batches = 0; ; batches++) {
    const next = await nextBatch(reader, segment, { chain, position });
    if (next.header === undefined) {
      return { chain: chain ?? chainStart, position, sealed: false, batches, why: next.why };
    }
    const { header, end, bytes } = next;
    const payload = await reader.view(position + batchHeaderBytes, header.length);
    told.onBatch?.(header, position);
    replayEntries(payload, header, `${reader.path}: batch at offset ${position}`, told.replay);
    chain = end;
    position += bytes;
    if ((header.flags & batchFlag.seal) !== 0) {
      return { chain, position, sealed: true, batches: batches + 1, why: "" };
    }
  }
}

export type NextBatch =
  | {
      readonly header: BatchHeader;
      /** The chain with this batch. */
      readonly end: ChainEnd;
      /** What it takes in the segment. */
      readonly bytes: number;
    }
  | { readonly header?: undefined; readonly why: string };

/** Reads the batch at `position` if it follows `chain`; with no chain, any whole batch of the segment. */
export async function nextBatch(
  reader: SegmentReader,
  segment: SegmentHeader,
  at: { chain: ChainEnd | undefined; position: number },
): Promise<NextBatch> {
  const { chain, position } = at;
  if (position + blockBytes > reader.size) {
    return { why: "expected SEAL, found the end of the file" };
  }
  const head = await reader.view(position, batchHeaderBytes);
  const decoded = decodeBatchHeader(head, segment.salt, reader.path);
  if (decoded.header === undefined) {
    return decoded;
  }
  const { header, crc: headerCrc } = decoded;
  const why = chainBreak(header, chain, segment.generation);
  if (why !== undefined) {
    return { why };
  }
  const room = reader.size - position - batchHeaderBytes;
  if (header.length > room) {
    return { why: `expected at most ${room} payload bytes, found ${header.length}` };
  }
  const payload = await reader.view(position + batchHeaderBytes, header.length);
  const crc = crc32c(payload, 0, header.length, 0);
  if (crc !== header.payloadCrc) {
    return {
      why: `expected payload CRC ${crcText(header.payloadCrc)} over ${header.length} bytes, found ${crcText(crc)}`,
    };
  }
  const { seq, term, firstLsn, entries } = header;
  return {
    header,
    end: { seq, term, lsn: firstLsn + entries - 1, crc: headerCrc },
    bytes: padded(batchHeaderBytes + header.length),
  };
}

/**
 * The checksums hold, so these are the bytes the writer meant; framing that does not add up even so is
 * refused before any entry of the batch is replayed.
 */
export function replayEntries(
  payload: Uint8Array,
  header: BatchHeader,
  where: string,
  replay: Replay,
): void {
  const view = viewOf(payload);
  const starts: number[] = [];
  let at = 0;
  while (at + entryHeaderBytes <= payload.length) {
    starts.push(at + entryHeaderBytes);
    at += entryHeaderBytes + view.getUint32(at, true);
  }
  if (at !== payload.length || starts.length !== header.entries) {
    throw corrupt(
      where,
      `expected ${header.entries} entries in ${payload.length} bytes, found ${starts.length} ending at ${at}`,
    );
  }
  for (const [i, start] of starts.entries()) {
    const end = start + view.getUint32(start - entryHeaderBytes, true);
    replay(lsn(header.firstLsn + i), payload.subarray(start, end));
  }
}

export interface Tail {
  /** The highest term in any batch header of this segment behind the break; 0 for none. */
  readonly termMax: number;
  /** A batch that says the missing one was durable. */
  readonly witness: { readonly position: number; readonly header: BatchHeader } | undefined;
}

/** Looks at every block behind the break at `position` for what earlier writers left there. */
export async function inspectTail(
  reader: SegmentReader,
  segment: SegmentHeader,
  at: { chain: ChainEnd; position: number },
): Promise<Tail> {
  let termMax = 0;
  let witness: Tail["witness"];
  for (let position = at.position; position + blockBytes <= reader.size; position += blockBytes) {
    const head = await reader.view(position, batchHeaderBytes);
    const { header } = decodeBatchHeader(head, segment.salt, reader.path);
    if (header === undefined || header.generation !== segment.generation) {
      continue;
    }
    termMax = Math.max(termMax, header.term);
    if (header.term >= at.chain.term && header.durableSeq > at.chain.seq) {
      witness ??= { position, header };
    }
  }
  return { termMax, witness };
}
