import { ForebayError } from "../../shared/errors/mod.ts";
import { blockBytes, errorCode, type Disk } from "../storage/mod.ts";
import { chainStart, type BatchHeader, type ChainEnd } from "./batchHeader.ts";
import { generationOfName, hex } from "./layout.ts";
import { readManifest } from "./manifest.ts";
import { scanSegment, type BatchSeen } from "./scan.ts";
import { decodeSegmentHeader } from "./segmentHeader.ts";
import { SegmentReader } from "./segmentReader.ts";
import { readWatermark } from "./watermark.ts";

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
  const plain = { name, generation, bytes: reader.size, ...counts, usedBytes: 0, batches: 0 };
  try {
    const size = Math.min(blockBytes, reader.size);
    const header = decodeSegmentHeader(await reader.view(0, size), reader.path);
    const { createdAt } = header;
    // Batches of a spare are stale, whatever they say; those of a segment in use chain on to the one before.
    const replay = (): void => undefined;
    const result = await scanSegment(reader, header, context.chain, { replay, onBatch: seen });
    const { batches, position: usedBytes, sealed } = result;
    const state = stateOf(generation, sealed, context);
    return {
      segment: {
        ...{ ...plain, ...counts, state, usedBytes, batches, createdAt },
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
