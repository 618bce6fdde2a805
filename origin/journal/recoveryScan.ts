import { ForebayError } from "../../shared/errors/mod.ts";
import { blockBytes, type Disk } from "../storage/mod.ts";
import { chainStart, decodeBatchHeader, type ChainEnd } from "./batchHeader.ts";
import { corrupt } from "./damage.ts";
import { noFindings, type Findings } from "./findings.ts";
import { batchHeaderBytes, hex, segmentName } from "./layout.ts";
import { inspectTail, scanSegment } from "./scan.ts";
import { decodeSegmentHeader, type SegmentHeader } from "./segmentHeader.ts";
import { SegmentReader } from "./segmentReader.ts";
import type { SealedSegment } from "./segments.ts";
import type { Replay } from "./types.ts";

/** A segment and where its next batch goes. */
export interface ActiveSegment {
  readonly header: SegmentHeader;
  readonly position: number;
}

export interface ScanOptions {
  readonly disk: Disk;
  readonly dir: string;
  /** Undefined: whatever size they have. */
  readonly segmentBytes: number | undefined;
  /** `head` may be above what the manifest says, when the watermark is ahead of it. */
  readonly manifest: { readonly head: number; readonly active: number; readonly id: Uint8Array };
  readonly replay: Replay;
  /** Called with each segment when all of it was read. */
  readonly onRead: (reader: SegmentReader) => Promise<void>;
}

export interface Scanned {
  readonly chain: ChainEnd;
  readonly term: number;
  readonly active: ActiveSegment | undefined;
  readonly activeUsed: boolean;
  readonly sealed: readonly SealedSegment[];
  readonly spares: readonly SegmentHeader[];
  readonly findings: Findings;
}

type Counts = { -readonly [K in keyof Findings]: number };

/** One pass over the segments, oldest first. Changes nothing. */
export class RecoveryScan {
  readonly #options: ScanOptions;
  readonly #sealed: SealedSegment[] = [];
  readonly #spares: SegmentHeader[] = [];
  readonly #findings: Counts = noFindings();
  /** Undefined: the batches before the head are trimmed, the first one found says where the chain stands. */
  #chain: ChainEnd | undefined;
  #termMax = 0;
  #active: ActiveSegment | undefined;
  #buffer: Uint8Array | undefined;

  constructor(options: ScanOptions) {
    this.#options = options;
    this.#chain = options.manifest.head === 1 ? chainStart : undefined;
  }

  /** @throws ForebayError `journal_corrupt` | `format_unsupported` | `config_invalid`, or the error of a failed call */
  async run(last: number): Promise<Scanned> {
    const { head, active } = this.#options.manifest;
    for (let generation = head; generation <= last; generation++) {
      await this.#readSegment(generation);
    }
    const chain = this.#chain ?? chainStart;
    const findings = this.#findings;
    findings.creating = active === 0 ? 1 : 0;
    findings.midRotation = active > 0 && this.#active?.header.generation !== active ? 1 : 0;
    return {
      chain,
      term: Math.max(chain.term, this.#termMax) + 1,
      active: this.#active,
      activeUsed: (this.#active?.position ?? 0) > blockBytes,
      sealed: this.#sealed,
      spares: this.#spares,
      findings,
    };
  }

  async #readSegment(generation: number): Promise<void> {
    const { disk, dir, onRead } = this.#options;
    const path = `${dir}/${segmentName(generation)}`;
    const reader = await SegmentReader.open(disk, path, this.#buffer);
    try {
      const header = await this.#readHeader(reader, generation);
      if (this.#active === undefined) {
        await this.#scan(reader, header);
      } else {
        await mustBeUnused(reader, header, this.#active);
        this.#spares.push(header);
        this.#findings.spares += 1;
      }
      await onRead(reader);
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
    const { manifest, segmentBytes } = this.#options;
    const expected = { generation, id: hex(manifest.id), size: header.bytes };
    const found = { generation: header.generation, id: hex(header.id), size };
    for (const what of ["generation", "id", "size"] as const) {
      if (expected[what] !== found[what]) {
        throw corrupt(path, `expected ${what} ${expected[what]}, found ${found[what]}`);
      }
    }
    if (segmentBytes !== undefined && header.bytes !== segmentBytes) {
      throw new ForebayError(
        "config_invalid",
        `${path} is a segment of ${header.bytes} bytes, configured are ${segmentBytes}; a journal keeps the size it was made with`,
      );
    }
    return header;
  }

  async #scan(reader: SegmentReader, header: SegmentHeader): Promise<void> {
    const { manifest, replay } = this.#options;
    const result = await scanSegment(reader, header, this.#chain, { replay });
    const { position, why } = result;
    if (result.batches > 0) {
      this.#chain = result.chain;
    }
    if (result.sealed) {
      this.#sealed.push({ header, lastLsn: result.chain.lsn });
      this.#findings.sealed += 1;
      return;
    }
    if (header.generation < manifest.active) {
      throw corrupt(reader.path, `the chain ends before SEAL at offset ${position}: ${why}`);
    }
    if (this.#chain === undefined) {
      // A trim leaves the segments from a durable batch on.
      throw corrupt(
        reader.path,
        `the first segment held has no batch at offset ${position}: ${why}`,
      );
    }
    const tail = await inspectTail(reader, header, { chain: this.#chain, position });
    if (tail.witness !== undefined) {
      const { seq, durableSeq } = tail.witness.header;
      throw corrupt(
        reader.path,
        `acknowledged data is damaged at offset ${position}: ${why}; the batch ${seq} at offset ${tail.witness.position} says that ${durableSeq} was durable`,
      );
    }
    this.#findings[result.batches === 0 ? "activeEmpty" : "cleanEnd"] += 1;
    this.#findings.crashTail += tail.termMax > 0 ? 1 : 0;
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
