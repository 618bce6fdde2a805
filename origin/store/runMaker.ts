import type { Disk, DiskFile } from "../storage/mod.ts";
import type { Arena } from "./arena.ts";
import { removeFile } from "./catalog.ts";
import type { Counters } from "./counters.ts";
import { type Run, runName } from "./run.ts";
import { encodeHeader } from "./runHeader.ts";
import { RunIndex } from "./runIndex.ts";
import { runBlockBytes, type RunIdentity, RunWriter } from "./runWriter.ts";
import { SequentialFile } from "./sequentialFile.ts";

export interface RunMaker {
  readonly disk: Disk;
  readonly dir: string;
  readonly counters: Counters;
  /** Lets others have their turn; called about every block, and rejects when the work is to be given up. */
  turn(): Promise<void>;
}

/** What a run is made of. */
export interface RunContent {
  readonly identity: RunIdentity;
  /** Encoded. */
  readonly state: Uint8Array;
  /** Gives the records, sorted; awaits `spent` for what it gave. */
  readonly fill: (writer: RunWriter, spent: (bytes: number) => Promise<void>) => Promise<void>;
}

/**
 * Writes a run, durably, its name too. It lives when a catalog names it.
 *
 * @throws whatever the disk throws; nothing of the run is left then, if the disk lets it be unlinked
 */
export async function makeRun(maker: RunMaker, content: RunContent): Promise<Run> {
  const { disk, dir, counters } = maker;
  const path = `${dir}/${runName(content.identity.run)}`;
  const file = await disk.open(path, "create");
  const out = new SequentialFile(file, counters);
  try {
    const run = await write(maker, content, { file, out, path });
    await disk.syncDirectory(dir);
    return run;
  } catch (error) {
    await out.settled();
    await file.close();
    await removeFile(disk, path).catch(() => undefined);
    throw error;
  }
}

interface Target {
  readonly file: DiskFile;
  readonly out: SequentialFile;
  readonly path: string;
}

async function write(
  maker: RunMaker,
  { identity, state, fill }: RunContent,
  { file, out, path }: Target,
): Promise<Run> {
  const writer = new RunWriter(out, identity);
  let unpaced = 0;
  await fill(writer, async (bytes) => {
    unpaced += bytes;
    if (unpaced >= runBlockBytes) {
      unpaced = 0;
      await out.drained();
      await maker.turn();
    }
  });
  const { header, index } = writer.finish(state);
  await out.drained();
  await out.finish(encodeHeader(header));
  const { run, lane } = identity;
  const { payloadBytes } = header;
  const fileBytes = out.length;
  return { run, lane, fileBytes, payloadBytes, path, file, header, index: new RunIndex(index) };
}

/** What a record costs beside its bytes. */
const recordCost = 64;

/** The records of an arena that takes no more appends. */
export function recordsOf(arena: Arena): RunContent["fill"] {
  return async (writer, spent) => {
    for (const stream of arena.streams()) {
      const held = arena.get(stream);
      let next = held?.first ?? 0;
      // A stream that is dropped meanwhile is left out from here on: what is in the run of it is read by nobody.
      while (arena.get(stream) === held && held !== undefined && next < held.next) {
        let cost = recordCost;
        for (const record of held.read(next, held.next, runBlockBytes)) {
          writer.add({ stream, record: next, byte: held.position(next) }, record, held.time(next));
          next += 1;
          cost += record.length;
        }
        await spent(cost);
      }
    }
  };
}
