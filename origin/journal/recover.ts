import { ForebayError } from "../../shared/errors/mod.ts";
import { blockBytes, type Disk } from "../storage/mod.ts";
import { decodeBatchHeader, type ChainEnd } from "./batchHeader.ts";
import type { Counters } from "./counters.ts";
import { corrupt } from "./damage.ts";
import { batchHeaderBytes, generationOfName, hex, preparingSuffix, segmentName } from "./layout.ts";
import { manifestPath, openManifest, type Manifest } from "./manifest.ts";
import { probeName } from "./probe.ts";
import { inspectTail, scanSegment } from "./scan.ts";
import { decodeSegmentHeader, type SegmentHeader } from "./segmentHeader.ts";
import { SegmentReader } from "./segmentReader.ts";
import type { Replay } from "./types.ts";

/** A segment and where its next batch goes. */
export interface ActiveSegment {
  readonly header: SegmentHeader;
  readonly position: number;
}

export interface Recovered {
  /** Undefined: there was no journal. */
  readonly manifest: Manifest | undefined;
  /** The chain after the last accepted batch. */
  readonly chain: ChainEnd;
  /** The boot number to write with: above every one seen. */
  readonly term: number;
  /** Undefined: every segment is sealed, or there is none. */
  readonly active: ActiveSegment | undefined;
  /** Segments made ahead, in order of generation. */
  readonly spares: readonly SegmentHeader[];
  /** The highest segment generation there is; 0 for none. */
  readonly newest: number;
  /** Files a crash left half made; to be removed. */
  readonly leftovers: readonly string[];
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
 * @throws ForebayError `journal_corrupt` | `format_unsupported` | `config_invalid`, or the error of a failed call
 */
export async function recover(options: RecoveryOptions, replay: Replay): Promise<Recovered> {
  const { disk, dir, counters } = options;
  const names = await disk.list(dir);
  const leftovers = names.filter((name) => name.endsWith(preparingSuffix) || name === probeName);
  const generations = names.flatMap((name) => generationOfName(name) ?? []);
  const manifest = await openManifest(disk, dir, counters);
  if (manifest === undefined) {
    if (generations.length > 0) {
      const found = `${generations.length} segments are there`;
      throw corrupt(manifestPath(dir), `${found}, but the manifest they require is not`);
    }
    const chain = { seq: 0, term: 0, lsn: 0, crc: 0 };
    return { manifest, chain, term: 1, active: undefined, spares: [], newest: 0, leftovers };
  }
  try {
    const last = lastGeneration(manifest, generations, dir);
    const scanned = await new Scan(options, manifest, replay).run(last);
    await manifest.sync();
    await disk.syncDirectory(dir);
    counters.syncs += 1;
    return { manifest, ...scanned, newest: last, leftovers };
  } catch (error) {
    await manifest.close();
    throw error;
  }
}

/** The highest generation, when none is missing from the manifest's head up to it. */
function lastGeneration(manifest: Manifest, generations: readonly number[], dir: string): number {
  const { head, active } = manifest.values;
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

/** One pass over the segments, oldest first. */
class Scan {
  readonly #options: RecoveryOptions;
  readonly #manifest: Manifest;
  readonly #replay: Replay;
  readonly #spares: SegmentHeader[] = [];
  #chain: ChainEnd = { seq: 0, term: 0, lsn: 0, crc: 0 };
  #termMax = 0;
  #active: ActiveSegment | undefined;
  #buffer: Uint8Array | undefined;

  constructor(options: RecoveryOptions, manifest: Manifest, replay: Replay) {
    this.#options = options;
    this.#manifest = manifest;
    this.#replay = replay;
  }

  async run(last: number): Promise<Omit<Recovered, "manifest" | "newest" | "leftovers">> {
    for (let generation = this.#manifest.values.head; generation <= last; generation++) {
      await this.#readSegment(generation);
    }
    return {
      chain: this.#chain,
      term: Math.max(this.#chain.term, this.#termMax) + 1,
      active: this.#active,
      spares: this.#spares,
    };
  }

  async #readSegment(generation: number): Promise<void> {
    const { disk, dir, counters } = this.#options;
    const reader = await SegmentReader.open(
      disk,
      `${dir}/${segmentName(generation)}`,
      this.#buffer,
    );
    try {
      const header = await this.#readHeader(reader, generation);
      if (this.#active === undefined) {
        await this.#scan(reader, header);
      } else {
        await mustBeUnused(reader, header, this.#active);
        this.#spares.push(header);
      }
      await reader.sync();
      counters.syncs += 1;
    } finally {
      this.#buffer = reader.buffer;
      await reader.close();
    }
  }

  async #readHeader(reader: SegmentReader, generation: number): Promise<SegmentHeader> {
    const { path, size } = reader;
    if (size < blockBytes) {
      throw corrupt(path, `expected at least ${blockBytes} bytes, found ${size}`);
    }
    const header = decodeSegmentHeader(await reader.view(0, blockBytes), path);
    const expected = { generation, id: hex(this.#manifest.id), size: header.bytes };
    const found = { generation: header.generation, id: hex(header.id), size };
    for (const what of ["generation", "id", "size"] as const) {
      if (expected[what] !== found[what]) {
        throw corrupt(path, `expected ${what} ${expected[what]}, found ${found[what]}`);
      }
    }
    const { segmentBytes } = this.#options;
    if (header.bytes !== segmentBytes) {
      throw new ForebayError(
        "config_invalid",
        `${path} is a segment of ${header.bytes} bytes, configured are ${segmentBytes}; a journal keeps the size it was made with`,
      );
    }
    return header;
  }

  async #scan(reader: SegmentReader, header: SegmentHeader): Promise<void> {
    const result = await scanSegment(reader, header, this.#chain, this.#replay);
    this.#chain = result.chain;
    if (result.sealed) {
      return;
    }
    const { position, why } = result;
    if (header.generation < this.#manifest.values.active) {
      throw corrupt(reader.path, `the chain ends before SEAL at offset ${position}: ${why}`);
    }
    const tail = await inspectTail(reader, header, { chain: this.#chain, position });
    if (tail.witness !== undefined) {
      const { seq, durableSeq } = tail.witness.header;
      throw corrupt(
        reader.path,
        `acknowledged data is damaged at offset ${position}: ${why}; the batch ${seq} at offset ${tail.witness.position} says that ${durableSeq} was durable`,
      );
    }
    this.#termMax = Math.max(this.#termMax, tail.termMax);
    this.#active = { header, position };
  }
}

/**
 * A segment behind the active one was never written to: the manifest names a segment before its first batch.
 * A batch there means that the end of the active segment was lost.
 */
async function mustBeUnused(
  reader: SegmentReader,
  header: SegmentHeader,
  active: ActiveSegment,
): Promise<void> {
  const head = await reader.view(blockBytes, batchHeaderBytes);
  const first = decodeBatchHeader(head, header.salt, reader.path);
  if (first.header?.generation === header.generation) {
    throw corrupt(
      reader.path,
      `holds batch ${first.header.seq}, but segment ${active.header.generation} before it ends at offset ${active.position} without SEAL`,
    );
  }
}
