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
  readonly arena: Arena;
  /** Encoded. */
  readonly state: Uint8Array;
}

/**
 * Writes a run from an arena that takes no more appends, durably, its name too. It lives when a catalog names it.
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
  { identity, arena, state }: RunContent,
  { file, out, path }: Target,
): Promise<Run> {
  const writer = new RunWriter(out, identity);
  let since = 0;
  for (const stream of arena.streams()) {
    const held = arena.get(stream);
    let next = held?.first ?? 0;
    // A stream that is dropped meanwhile is left out from here on: what is in the run of it is read by nobody.
    while (arena.get(stream) === held && held !== undefined && next < held.next) {
      const records = held.read(next, held.next, runBlockBytes);
      for (const record of records) {
        writer.add({ stream, record: next, byte: held.position(next) }, record, held.time(next));
        next += 1;
        since += record.length;
      }
      if (since >= runBlockBytes) {
        since = 0;
        await out.drained();
        await maker.turn();
      }
    }
    since += 64;
  }
  const { header, index } = writer.finish(state);
  await out.drained();
  await out.finish(encodeHeader(header));
  const { run, lane } = identity;
  const payloadBytes = header.payloadBytes;
  return { run, lane, fileBytes: out.length, payloadBytes, path, file, index: new RunIndex(index) };
}
