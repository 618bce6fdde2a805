import { invariant } from "../../shared/errors/mod.ts";
import { crc32c } from "../native/mod.ts";
import { ByteWriter, storeCorrupt } from "./bytes.ts";
import type { Counters } from "./counters.ts";
import { readSection, type Run } from "./run.ts";
import { type ChunkPlace, tableEntryBytes } from "./runIndex.ts";
import type { RunContent } from "./runMaker.ts";
import { RunScanner } from "./runScanner.ts";
import type { RunWriter } from "./runWriter.ts";
import { mergeState, writeState } from "./stateSection.ts";
import { streamStateKind } from "./types.ts";

/** Smaller chunks are joined with their neighbours; larger ones are copied as they are. */
const smallChunkBytes = 16 * 1024;
const entriesPerTurn = 1000;

/** What the state of a merged run is, and which streams nobody reads any more. */
export interface MergedState {
  readonly state: Uint8Array;
  readonly dead: ReadonlySet<number>;
}

/**
 * Of each key the newest value. Tombstones are dropped when there is no older run left for them to hide something in.
 *
 * @param runs neighbours, oldest first
 */
export async function mergedState(
  runs: readonly Run[],
  last: boolean,
  counters: Counters,
  turn: () => Promise<void>,
): Promise<MergedState> {
  const parts: { bytes: Uint8Array; what: string }[] = [];
  for (const { path, file, header } of runs) {
    const bytes = await readSection(file, header.state, counters);
    if (bytes === null) {
      throw storeCorrupt(`the state of ${path} is damaged in both copies of a page`);
    }
    parts.push({ bytes, what: `the state of ${path}` });
  }
  const to = new ByteWriter();
  const dead = new Set<number>();
  let entries = 0;
  for (const entry of mergeState(parts)) {
    if (entry.value === null && entry.kind === streamStateKind) {
      dead.add(entry.key);
    }
    if (entry.value !== null || !last) {
      writeState(to, entry);
    }
    entries += 1;
    if (entries % entriesPerTurn === 0) {
      await turn();
    }
  }
  return { state: to.finish(), dead };
}

/** The records of neighbouring runs, oldest first, without those of dead streams. */
export function mergedRecords(
  runs: readonly Run[],
  dead: ReadonlySet<number>,
  counters: Counters,
): RunContent["fill"] {
  return async (writer, spent) => {
    const scanners = runs.map((run) => new RunScanner(run, counters));
    for (let stream = least(scanners); stream !== null; stream = least(scanners)) {
      // Of two runs the later one holds the stream's later records.
      for (const scanner of scanners) {
        for (let { place } = scanner; place?.stream === stream; { place } = scanner) {
          if (!dead.has(stream)) {
            copyChunk(writer, place, await scanner.bytes(place));
          }
          scanner.skip();
          await spent(place.payloadBytes + tableEntryBytes);
        }
      }
    }
  };
}

function least(scanners: readonly RunScanner[]): number | null {
  let stream: number | null = null;
  for (const { place } of scanners) {
    if (place !== null && (stream === null || place.stream < stream)) {
      stream = place.stream;
    }
  }
  return stream;
}

/** Damage is copied with what tells of it: a table and CRCs are never made anew. */
function copyChunk(writer: RunWriter, place: ChunkPlace, bytes: Uint8Array): void {
  const { payloadBytes, records, stream } = place;
  const tableBytes = records * tableEntryBytes;
  invariant(bytes.length === payloadBytes + tableBytes, "a chunk is payload and table");
  const sound = crc32c(bytes, payloadBytes, tableBytes, 0) === place.tableCrc;
  if (payloadBytes >= smallChunkBytes || !sound) {
    writer.copy(place, bytes);
    return;
  }
  const table = new DataView(bytes.buffer, bytes.byteOffset + payloadBytes, tableBytes);
  let from = 0;
  for (let i = 0; i < records; i++) {
    const entry = i * tableEntryBytes;
    const length = table.getUint32(entry, true);
    const key = { stream, record: place.record + i, byte: place.byte + from };
    const time = table.getFloat64(entry + 8, true);
    writer.add(key, bytes.subarray(from, from + length), time, table.getUint32(entry + 4, true));
    from += length;
  }
}
