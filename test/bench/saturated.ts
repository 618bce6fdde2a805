import { closeSync, constants, openSync } from "node:fs";
import { Areas } from "../../origin/journal/areas.ts";
import { Batch } from "../../origin/journal/batch.ts";
import { newCounters } from "../../origin/journal/counters.ts";
import { NativeCommitter, type SystemFile } from "../../origin/journal/nativeCommitter.ts";
import { nativeAbsence, nativeLayer } from "../../origin/native/mod.ts";

export interface Saturation {
  readonly backend: "uring" | "threads";
  readonly file: string;
  readonly fileBytes: number;
  /** Bytes of a batch on the device, header and padding counted. */
  readonly batchBytes: number;
  readonly depth: number;
  readonly direct: boolean;
  readonly ms: number;
  /** Batches a second at most; without it as many as the disk takes. */
  readonly perSecond?: number;
  /** Looks for what is durable in every turn of the event loop instead of sleeping. */
  readonly polling?: boolean;
}

export interface Saturated {
  readonly perSecond: number;
  /** CPU of the whole process, µs per commit. */
  readonly cpuUs: number;
  readonly bellsPerCommit: number;
  readonly bytesWritten: number;
  readonly payloadBytes: number;
  readonly commits: number;
}

const headerBytes = 68;
const entryHeaderBytes = 4;

/** Keeps a committer's queue full for a while, as a busy journal would, and counts what became durable. */
export async function saturate(given: Saturation): Promise<Saturated> {
  const layer = nativeLayer();
  if (layer === undefined) {
    throw new Error(`bench commit needs the addon: ${nativeAbsence()}`);
  }
  const flags = constants.O_WRONLY | (given.direct ? constants.O_DIRECT : 0);
  const fd = openSync(given.file, flags);
  const areaBytes = Math.max(64 * 1024, given.batchBytes);
  const committer = new NativeCommitter({
    ...{ layer, areaBytes, backend: given.backend, depth: given.depth },
    ...{ chain: { seq: 0, term: 1, lsn: 0, crc: 0 }, term: 1, counters: newCounters() },
  });
  try {
    return await new Load(committer, given, fd, areaBytes).run();
  } finally {
    committer.close();
    closeSync(fd);
  }
}

class Load {
  readonly #committer: NativeCommitter;
  readonly #given: Saturation;
  readonly #areas: Areas;
  readonly #file: SystemFile;
  readonly #payload: Uint8Array;
  #position = 4096;
  #submitted = 0;
  #durable = 0;
  #from = 0;
  #stopped = false;

  constructor(committer: NativeCommitter, given: Saturation, fd: number, areaBytes: number) {
    this.#committer = committer;
    this.#given = given;
    this.#areas = new Areas(committer, areaBytes);
    this.#file = { path: given.file, descriptor: fd };
    this.#payload = new Uint8Array(given.batchBytes - headerBytes - entryHeaderBytes).fill(1);
  }

  async run(): Promise<Saturated> {
    const { ms, polling } = this.#given;
    const committer = this.#committer;
    let failure: Error | undefined;
    committer.serve(
      {
        onAdvance: (lsn) => {
          this.#durable = lsn;
          this.#fill();
        },
        onFailed: (error) => {
          failure = error as Error;
        },
      },
      (area) => {
        this.#areas.giveBack(area);
      },
    );
    const cpu = process.cpuUsage();
    this.#from = performance.now();
    this.#fill();
    while (performance.now() - this.#from < ms && failure === undefined) {
      await turn(polling === true || this.#given.perSecond !== undefined, polling === true);
      if (polling === true) {
        committer.look();
      }
      this.#fill();
    }
    this.#stopped = true;
    await committer.settled();
    const seconds = (performance.now() - this.#from) / 1000;
    const { user, system } = process.cpuUsage(cpu);
    if (failure !== undefined) {
      throw failure;
    }
    return {
      perSecond: this.#durable / seconds,
      cpuUs: (user + system) / this.#durable,
      bellsPerCommit: committer.bells / this.#durable,
      bytesWritten: this.#submitted * this.#given.batchBytes,
      payloadBytes: this.#submitted * (this.#payload.length + entryHeaderBytes),
      commits: this.#durable,
    };
  }

  #fill(): void {
    const { fileBytes, batchBytes, perSecond = Infinity } = this.#given;
    const due = perSecond * ((performance.now() - this.#from) / 1000);
    while (
      !this.#stopped &&
      this.#committer.inFlight < this.#committer.inFlightMax &&
      this.#submitted < due
    ) {
      if (this.#position + batchBytes > fileBytes) {
        this.#position = 4096;
      }
      this.#submitted += 1;
      const place = { generation: 1, position: this.#position };
      const area = this.#areas.take(batchBytes);
      const batch = new Batch(area, place, {
        firstLsn: this.#submitted,
        limit: area.length,
        flags: 0,
      });
      batch.add([this.#payload], this.#payload.length);
      this.#position += batchBytes;
      this.#committer.submit(batch, this.#file, 1);
    }
  }
}

/** The event loop goes round once: at once, after a millisecond where something is paced, or when something happens. */
function turn(paced: boolean, polling: boolean): Promise<void> {
  return new Promise((resolve) => {
    if (polling) {
      setImmediate(resolve);
    } else {
      setTimeout(resolve, paced ? 1 : 50);
    }
  });
}
