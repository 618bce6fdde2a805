import { ForebayError } from "../../shared/errors/mod.ts";
import { blockBytes, errorCode, type Disk } from "../storage/mod.ts";
import { chainStart, type BatchHeader, type ChainEnd } from "./batchHeader.ts";
import { generationOfName, hex } from "./layout.ts";
import { readManifest } from "./manifest.ts";
import { nextBatch, scanSegment, type BatchSeen } from "./scan.ts";
import { decodeSegmentHeader, type SegmentHeader } from "./segmentHeader.ts";
import { SegmentReader } from "./segmentReader.ts";
import { readWatermark } from "./watermark.ts";

/** First and last LSN, both included. */
export type LsnRange = readonly [number, number];

/** One segment file as it lies there. */
export interface SegmentSurvey {
  readonly name: string;
  readonly generation: number;
  /** Size of the file. */
  readonly bytes: number;
  /** `damaged`: no header can be read. Whether a chain that ends without SEAL is damage, `verifyJournal` says. */
  readonly state: "trimmed" | "sealed" | "active" | "spare" | "damaged";
  /** Up to the end of the last batch. */
  readonly usedBytes: number;
  readonly batches: number;
  readonly entries: number;
  /** LSNs; 0 when there is no entry. */
  readonly firstLsn: number;
  readonly lastLsn: number;
  /** Whole batches behind the place where the chain ends: behind damage, or unacknowledged. */
  readonly behind: readonly LsnRange[];
  /** ms since the Unix epoch. */
  readonly createdAt: number;
  /** Why the chain of batches ends, or there is none; null after SEAL. */
  readonly why: string | null;
}

export interface JournalSurvey {
  readonly dir: string;
  /** Null: no manifest that can be read, for this reason. */
  readonly id: string | null;
  readonly manifestDamage: string | null;
  readonly head: number;
  readonly active: number;
  /** LSN. */
  readonly trimmed: number;
  readonly watermarkDamage: string | null;
  readonly segments: readonly SegmentSurvey[];
}

/**
 * What lies in a journal's directory. Only reads, by position, so it may look at a journal in use; what changes
 * meanwhile may be shown as it was or as it is. Damage is part of the picture and no error.
 *
 * @param onBatch sees every batch whose checksums hold and that follows on the one before
 */
export async function surveyJournal(
  disk: Disk,
  dir: string,
  onBatch: (segment: string, header: BatchHeader, position: number) => void = () => undefined,
): Promise<JournalSurvey> {
  const names = await disk.list(dir);
  const manifest = await orDamage(() => readManifest(disk, dir));
  const watermark = await orDamage(() => readWatermark(disk, dir));
  const head = Math.max(manifest.value?.head ?? 1, watermark.value?.head ?? 1);
  const active = manifest.value?.active ?? 0;
  const segments: SegmentSurvey[] = [];
  let chain: ChainEnd | undefined = head === 1 ? chainStart : undefined;
  for (const name of names) {
    const generation = generationOfName(name);
    if (generation === undefined) {
      continue;
    }
    const seen: BatchSeen = (header, position) => {
      onBatch(name, header, position);
    };
    const own = generation < head ? undefined : chain;
    const found = await surveySegment(disk, `${dir}/${name}`, { chain: own, seen, head, active });
    if (found !== undefined) {
      segments.push(found.segment);
      chain = found.end;
    }
  }
  return {
    dir,
    id: manifest.value === undefined ? null : hex(manifest.value.id),
    manifestDamage: manifest.damage,
    head,
    active,
    trimmed: watermark.value?.trimmed ?? 0,
    watermarkDamage: watermark.value?.damage ?? watermark.damage,
    segments,
  };
}

async function orDamage<T>(read: () => Promise<T>): Promise<{ value?: T; damage: string | null }> {
  try {
    return { value: await read(), damage: null };
  } catch (error) {
    if (error instanceof ForebayError) {
      return { damage: error.message };
    }
    throw error;
  }
}

interface SegmentContext {
  readonly chain: ChainEnd | undefined;
  readonly seen: BatchSeen;
  readonly head: number;
  readonly active: number;
}

/** Undefined: it went away while we looked. */
async function surveySegment(
  disk: Disk,
  path: string,
  context: SegmentContext,
): Promise<{ segment: SegmentSurvey; end: ChainEnd | undefined } | undefined> {
  let reader: SegmentReader;
  try {
    reader = await SegmentReader.open(disk, path);
  } catch (error) {
    if (errorCode(error) === "ENOENT") {
      return undefined;
    }
    throw error;
  }
  try {
    return await readSegment(reader, context);
  } finally {
    await reader.close();
  }
}

async function readSegment(
  reader: SegmentReader,
  context: SegmentContext,
): Promise<{ segment: SegmentSurvey; end: ChainEnd | undefined }> {
  const name = reader.path.slice(reader.path.lastIndexOf("/") + 1);
  const generation = generationOfName(name) ?? 0;
  const counts = { entries: 0, firstLsn: 0, lastLsn: 0 };
  const seen: BatchSeen = (header, position) => {
    context.seen(header, position);
    if (header.entries > 0) {
      counts.entries += header.entries;
      counts.firstLsn ||= header.firstLsn;
      counts.lastLsn = header.firstLsn + header.entries - 1;
    }
  };
  const none = { usedBytes: 0, batches: 0, behind: [] };
  const plain = { name, generation, bytes: reader.size, ...counts, ...none };
  try {
    const size = Math.min(blockBytes, reader.size);
    const header = decodeSegmentHeader(await reader.view(0, size), reader.path);
    const { createdAt } = header;
    // Batches of a spare are stale, whatever they say; those of a segment in use chain on to the one before.
    const replay = (): void => undefined;
    const result = await scanSegment(reader, header, context.chain, { replay, onBatch: seen });
    const { batches, position: usedBytes, sealed } = result;
    const state = stateOf(generation, sealed, context);
    const looks = !sealed && state !== "spare";
    const behind = looks ? await batchesBehind(reader, header, usedBytes) : [];
    return {
      segment: {
        ...{ ...plain, ...counts, behind, state, usedBytes, batches, createdAt },
        why: sealed ? null : result.why,
      },
      end: sealed ? result.chain : undefined,
    };
  } catch (error) {
    if (!(error instanceof ForebayError)) {
      throw error;
    }
    const segment = { ...plain, ...counts, state: "damaged", createdAt: 0 } as const;
    return { segment: { ...segment, why: error.message }, end: undefined };
  }
}

/** Whole batches of this segment at any block from `from` on. */
async function batchesBehind(
  reader: SegmentReader,
  header: SegmentHeader,
  from: number,
): Promise<LsnRange[]> {
  const ranges: LsnRange[] = [];
  for (let position = from; position + blockBytes <= reader.size;) {
    const next = await nextBatch(reader, header, { chain: undefined, position });
    if (next.header !== undefined && next.header.entries > 0) {
      ranges.push([next.header.firstLsn, next.end.lsn]);
    }
    position += next.header === undefined ? blockBytes : next.bytes;
  }
  return ranges;
}

function stateOf(
  generation: number,
  sealed: boolean,
  { head, active }: SegmentContext,
): SegmentSurvey["state"] {
  if (generation < head) {
    return "trimmed";
  }
  if (sealed) {
    return "sealed";
  }
  return generation <= Math.max(active, head) ? "active" : "spare";
}

/** The LSNs whose entries can be read, as few ranges as possible, ascending. */
export function readableRanges({ segments }: JournalSurvey): LsnRange[] {
  const all = segments
    .filter(({ state }) => state !== "spare" && state !== "trimmed")
    .flatMap(({ firstLsn, lastLsn, behind }): LsnRange[] => [
      ...(firstLsn === 0 ? [] : [[firstLsn, lastLsn] as const]),
      ...behind,
    ])
    .toSorted(([a], [b]) => a - b);
  const merged: [number, number][] = [];
  for (const [first, last] of all) {
    const before = merged.at(-1);
    if (before !== undefined && first <= before[1] + 1) {
      before[1] = Math.max(before[1], last);
    } else {
      merged.push([first, last]);
    }
  }
  return merged;
}

/** Between the first and the last LSN that can be read, and above the mark: what cannot. */
export function missingRanges(survey: JournalSurvey): LsnRange[] {
  const missing: LsnRange[] = [];
  let next = survey.trimmed + 1;
  for (const [first, last] of readableRanges(survey)) {
    if (first > next) {
      missing.push([next, first - 1]);
    }
    next = Math.max(next, last + 1);
  }
  return missing;
}
