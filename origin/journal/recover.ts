import type { Disk } from "../storage/mod.ts";
import { chainStart, type ChainEnd } from "./batchHeader.ts";
import type { Counters } from "./counters.ts";
import { corrupt } from "./damage.ts";
import { generationOfName, preparingSuffix, segmentName } from "./layout.ts";
import { Manifest, manifestPath, readManifest, type ManifestValues } from "./manifest.ts";
import { probeName } from "./probe.ts";
import { noFindings, type Findings } from "./findings.ts";
import {
  RecoveryScan,
  type ActiveSegment,
  type Scanned,
  type ScanOptions,
} from "./recoveryScan.ts";
import type { FoundSegments } from "./segments.ts";
import type { Replay } from "./types.ts";
import { readWatermark, Watermark, watermarkName, type WatermarkValues } from "./watermark.ts";

export interface Recovered {
  /** Undefined: there was no journal. */
  readonly manifest: Manifest | undefined;
  readonly watermark: Watermark;
  /** The chain after the last accepted batch. */
  readonly chain: ChainEnd;
  /** The boot number to write with: above every one seen. */
  readonly term: number;
  /** Undefined: every segment is sealed, or there is none. */
  readonly active: ActiveSegment | undefined;
  readonly segments: FoundSegments;
  /** Files a crash left half made; to be removed. */
  readonly leftovers: readonly string[];
  readonly findings: Findings;
}

export interface RecoveryOptions {
  readonly disk: Disk;
  /** The shard's directory; it exists. */
  readonly dir: string;
  readonly segmentBytes: number;
  readonly counters: Counters;
}

/**
 * The recovery table of FORMAT.md. Changes nothing on the disk; what it read is durable when it resolves.
 *
 * @param replay gets every entry above the watermark
 * @throws ForebayError `journal_corrupt` | `format_unsupported` | `config_invalid`, or the error of a failed call
 */
export async function recover(options: RecoveryOptions, replay: Replay): Promise<Recovered> {
  const { disk, dir, counters } = options;
  const names = await disk.list(dir);
  const generations = names.flatMap((name) => generationOfName(name) ?? []);
  const leftovers = names.filter((name) => name.endsWith(preparingSuffix) || name === probeName);
  const manifest = await Manifest.open(disk, dir, counters);
  let watermark: Watermark | undefined;
  try {
    watermark = await Watermark.open(disk, dir, counters);
    const open = { manifest, watermark };
    const found =
      manifest === undefined
        ? nothingThere(dir, generations)
        : await readSegments(options, { manifest, watermark, generations }, replay);
    return { ...open, ...found, leftovers };
  } catch (error) {
    await watermark?.close();
    await manifest?.close();
    throw error;
  }
}

type Found = Omit<Recovered, "manifest" | "watermark" | "leftovers">;

function nothingThere(dir: string, generations: readonly number[]): Found {
  if (generations.length > 0) {
    const found = `${generations.length} segments are there`;
    throw corrupt(manifestPath(dir), `${found}, but the manifest they require is not`);
  }
  const segments = { below: [], sealed: [], spares: [], head: 1, newest: 0, activeUsed: false };
  const findings = { ...noFindings(), empty: 1 };
  return { chain: chainStart, term: 1, active: undefined, segments, findings };
}

interface There {
  readonly manifest: Manifest;
  readonly watermark: Watermark;
  readonly generations: readonly number[];
}

async function readSegments(
  options: RecoveryOptions,
  there: There,
  replay: Replay,
): Promise<Found> {
  const { disk, dir, counters, segmentBytes } = options;
  const { manifest, watermark, generations } = there;
  const found = await examine({
    disk,
    dir,
    segmentBytes,
    manifest: { ...manifest.values, id: manifest.id },
    watermark: watermark.values,
    generations,
    replay,
    // What could be read need not have been durable.
    onRead: async (reader) => {
      await reader.sync();
      counters.syncs += 1;
    },
  });
  await manifest.sync();
  await watermark.sync();
  await disk.syncDirectory(dir);
  counters.syncs += 1;
  return found;
}

interface Examination extends Pick<ScanOptions, "disk" | "dir" | "segmentBytes" | "onRead"> {
  readonly manifest: ManifestValues & { readonly id: Uint8Array };
  readonly watermark: WatermarkValues;
  readonly generations: readonly number[];
  readonly replay: Replay;
}

/** Reads everything and decides. */
async function examine(what: Examination): Promise<Found> {
  const { dir, manifest, watermark, generations, replay } = what;
  const { trimmed } = watermark;
  // The watermark is written before the manifest: a crash between leaves segments that nobody needs.
  const head = Math.max(manifest.head, watermark.head);
  const last = lastGeneration({ head, active: manifest.active, dir }, generations);
  const scanned = await new RecoveryScan({
    ...what,
    manifest: { ...manifest, head },
    replay: (lsn, bytes) => {
      if (lsn > trimmed) {
        replay(lsn, bytes);
      }
    },
  }).run(last);
  if (trimmed > scanned.chain.lsn) {
    throw corrupt(
      `${dir}/${watermarkName}`,
      `entries up to ${trimmed} were trimmed as durable, the journal ends at ${scanned.chain.lsn}`,
    );
  }
  const below = generations.filter((generation) => generation < head);
  return foundOf(scanned, { below, head, newest: last });
}

export interface Verified {
  readonly findings: Findings;
  /** LSN of the last entry, whether or not it was acknowledged. */
  readonly lastLsn: number;
  readonly trimmed: number;
  /** Entries above the mark. */
  readonly entries: number;
}

/**
 * The verdict a start would give, without changing or syncing anything. A journal in use may move on meanwhile: then the
 * answer is of no worth, and the caller asks again.
 *
 * @throws as `recover` does
 */
export async function verifyJournal(disk: Disk, dir: string): Promise<Verified> {
  const names = await disk.list(dir);
  const generations = names.flatMap((name) => generationOfName(name) ?? []);
  const manifest = await readManifest(disk, dir);
  if (manifest === undefined) {
    return {
      findings: nothingThere(dir, generations).findings,
      lastLsn: 0,
      trimmed: 0,
      entries: 0,
    };
  }
  const watermark = await readWatermark(disk, dir);
  let entries = 0;
  const { findings, chain } = await examine({
    ...{ disk, dir, segmentBytes: undefined, manifest, watermark, generations },
    replay: () => {
      entries += 1;
    },
    onRead: () => Promise.resolve(),
  });
  return { findings, lastLsn: chain.lsn, trimmed: watermark.trimmed, entries };
}

function foundOf(
  scanned: Scanned,
  where: { below: readonly number[]; head: number; newest: number },
): Found {
  const { chain, term, active, sealed, spares, activeUsed, findings } = scanned;
  return {
    chain,
    term,
    active,
    segments: { ...where, sealed, spares, activeUsed },
    findings: { ...findings, belowHead: where.below.length },
  };
}

/** The highest generation, when none is missing from the head up to it. */
function lastGeneration(
  required: { head: number; active: number; dir: string },
  generations: readonly number[],
): number {
  const { head, active, dir } = required;
  const last = Math.max(active, head - 1, ...generations);
  const there = new Set(generations);
  for (let generation = head; generation <= last; generation++) {
    if (!there.has(generation)) {
      throw corrupt(
        `${dir}/${segmentName(generation)}`,
        `expected the segments ${head} to ${last}, found ${generations.length} files and not this one`,
      );
    }
  }
  return last;
}
