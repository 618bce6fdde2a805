import { invariant } from "../../shared/errors/mod.ts";
import {
  frameBytes,
  requestBytes,
  requestFlag,
  type FrameRequest,
} from "../../shared/frame/mod.ts";
import { limits } from "../../shared/limits.ts";

/** Where a request lies: which frame of this append, counted from 0, and its place in that frame. */
export interface Place {
  readonly frame: number;
  readonly index: number;
}

/** Why a request fits no frame: one of its records, or (`record` null) all of them together. */
export interface Misfit {
  readonly record: number | null;
  /** What it would take, the frame around it included. */
  readonly bytes: number;
}

const emptyFrameBytes = frameBytes([]);
/** What requests may take up in one frame. */
const roomMax = limits.frameBytesMax - emptyFrameBytes;

/**
 * Lays the requests of one append into frames, in order. A request goes whole into the open frame or the next one; only
 * what is larger than a frame, and is not named whole by a producer's seq, is split between records.
 */
export class FrameLayout {
  readonly #frames: FrameRequest[][] = [];
  #openBytes = 0;
  #bytes = 0;

  get frames(): readonly (readonly FrameRequest[])[] {
    return this.#frames;
  }

  /** An upper bound of the frames' encoded bytes. */
  get bytes(): number {
    return this.#bytes;
  }

  static misfit(request: FrameRequest): Misfit | null {
    const bytes = requestBytes(request);
    if (bytes <= roomMax) {
      return null;
    }
    const fixed = requestBytes({ ...request, records: [] });
    const { records } = request;
    const record = records.findIndex(({ length }) => fixed + 4 + length > roomMax);
    if (record >= 0) {
      return { record, bytes: emptyFrameBytes + fixed + 4 + (records[record]?.length ?? 0) };
    }
    const splittable = request.producer === null && (request.flags & requestFlag.json) !== 0;
    return splittable ? null : { record: null, bytes: emptyFrameBytes + bytes };
  }

  /** The place of the request, or of its last part. Only for requests without a misfit. */
  place(request: FrameRequest): Place {
    const bytes = requestBytes(request);
    return bytes <= roomMax ? this.#put(request, bytes) : this.#split(request);
  }

  #split(request: FrameRequest): Place {
    const fixed = requestBytes({ ...request, records: [] });
    let records: Uint8Array[] = [];
    let bytes = fixed;
    for (const record of request.records) {
      if (bytes + 4 + record.length > roomMax) {
        this.#put({ ...request, records }, bytes);
        records = [];
        bytes = fixed;
      }
      records.push(record);
      bytes += 4 + record.length;
    }
    return this.#put({ ...request, records }, bytes);
  }

  #put(request: FrameRequest, bytes: number): Place {
    invariant(bytes <= roomMax && request.records.length > 0, "a placed request fits a frame");
    let open = this.#frames.at(-1);
    if (open === undefined || this.#openBytes + bytes > roomMax) {
      open = [];
      this.#frames.push(open);
      this.#openBytes = 0;
      this.#bytes += emptyFrameBytes;
    }
    open.push(request);
    this.#openBytes += bytes;
    this.#bytes += bytes;
    return { frame: this.#frames.length - 1, index: open.length - 1 };
  }
}
