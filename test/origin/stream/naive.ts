/*
 * A naive model of the streams: plain objects, copied whole after every entry, with the rules written once more and
 * plainly. Random requests go to both; a crash takes the model back to the copy of the durable entry.
 */

export interface NaiveStream {
  type: string;
  closed: boolean;
  records: string[];
  streamSeq: string | null;
  producers: Record<string, { epoch: number; seqs: number[] }>;
  life: number;
  /** Copied from another stream when it was made, or null. */
  fork: { from: string; life: number; at: number; subOffset: number; inherited: number } | null;
}
export interface Naive {
  streams: Record<string, NaiveStream>;
  /** Ended, with a fork that lives or is kept here itself. */
  softDeleted: Record<string, NaiveStream>;
  lives: number;
  fsn: number;
  quarantined: string[];
}

export interface Post {
  path: string;
  body: string;
  type: string;
  producer: { id: string; epoch: number; seq: number } | null;
  streamSeq: string | null;
  close: boolean;
}

const values = (type: string, body: string): string[] | string => {
  if (type !== "application/json") {
    return [body];
  }
  try {
    const value: unknown = JSON.parse(body);
    const list = Array.isArray(value) ? value : [value];
    return list.length === 0 ? "400 empty_array" : list.map((each) => JSON.stringify(each));
  } catch {
    return "400 bad_json";
  }
};

/** What the protocol says to a POST, and what it does to the model. */
export function naivePost(
  model: Naive,
  { path, body, type, producer, streamSeq, close }: Post,
): string {
  if (body === "" && !close) {
    return "400 empty_body";
  }
  const stream = model.streams[path];
  if (stream === undefined) {
    return naiveAbsent(model, path);
  }
  const known = producer === null ? undefined : stream.producers[producer.id];
  if (producer !== null && known !== undefined) {
    if (producer.epoch < known.epoch) {
      return "403 stale_epoch";
    }
    if (producer.epoch === known.epoch && isKnown(known.seqs, producer.seq)) {
      return "204";
    }
  }
  if (stream.closed) {
    return body === "" && producer === null ? "204" : "409 stream_closed";
  }
  if (body !== "" && type !== stream.type) {
    return "409 content_type_mismatch";
  }
  if (producer !== null) {
    const newest = known?.epoch === producer.epoch ? Math.max(...known.seqs) : -1;
    if (producer.seq > newest + 1) {
      return known === undefined || known.epoch === producer.epoch
        ? "409 producer_gap"
        : "400 bad_epoch_start";
    }
    if (newest - producer.seq >= 64) {
      return "409 seq_too_old";
    }
  }
  if (streamSeq !== null && stream.streamSeq !== null && streamSeq <= stream.streamSeq) {
    return "409 stream_seq_regression";
  }
  const records = body === "" ? [] : values(stream.type, body);
  if (typeof records === "string") {
    return records;
  }
  stream.records.push(...records);
  stream.closed = close;
  stream.streamSeq = streamSeq ?? stream.streamSeq;
  if (producer !== null) {
    naiveSeq(stream, producer);
  }
  return producer === null || body === "" ? "204" : "200";
}

/** A seq is known to be stored within the window, or below it when all before it are stored too. */
export function isKnown(seqs: readonly number[], seq: number): boolean {
  const dense = Array.from({ length: seq + 1 }, (_, n) => n).every((n) => seqs.includes(n));
  return seqs.includes(seq) && (dense || Math.max(...seqs) - seq < 64);
}

export function naiveSeq(
  stream: NaiveStream,
  { id, epoch, seq }: { id: string; epoch: number; seq: number },
): void {
  const known = stream.producers[id];
  const seqs = known?.epoch === epoch ? known.seqs : [];
  stream.producers[id] = { epoch, seqs: [...seqs, seq] };
}

export interface Put {
  path: string;
  /** Null only with `fork`: as its source. */
  type: string | null;
  closed: boolean;
  body: string;
  /** `at`: the record of the source where it begins, null for the tail. */
  fork: { from: string; at: number | null; subOffset: number } | null;
}

export function naivePut(model: Naive, { path, type, closed, body, fork }: Put): string {
  const stream = model.streams[path];
  if (stream !== undefined) {
    const same =
      (type === stream.type || type === null) &&
      closed === stream.closed &&
      (fork === null) === (stream.fork === null) &&
      (fork?.at ?? stream.fork?.at) === stream.fork?.at &&
      fork?.from === stream.fork?.from &&
      fork?.subOffset === stream.fork?.subOffset;
    return same ? "200" : "409 stream_conflict";
  }
  if (model.softDeleted[path] !== undefined) {
    return "409 path_held";
  }
  const made = fork === null ? null : naiveFork(model, type, fork);
  if (typeof made === "string") {
    return made;
  }
  const madeAs = made?.type ?? type ?? "application/octet-stream";
  const json = madeAs === "application/json";
  const records = body === "" || (json && body === "[]") ? [] : values(madeAs, body);
  if (typeof records === "string") {
    return records;
  }
  model.lives += 1;
  model.streams[path] = {
    type: madeAs,
    closed,
    records: [...(made?.records ?? []), ...records],
    streamSeq: null,
    producers: {},
    life: model.lives,
    fork: made?.fork ?? null,
  };
  return "201";
}

/** What a fork begins with, copied; or why there is none. */
function naiveFork(
  model: Naive,
  type: string | null,
  { from, at: asked, subOffset }: NonNullable<Put["fork"]>,
): Pick<NaiveStream, "type" | "records" | "fork"> | string {
  const source = model.streams[from];
  if (source === undefined) {
    return model.softDeleted[from] === undefined ? "404 stream_not_found" : "409 source_gone";
  }
  if (type !== null && type !== source.type) {
    return "409 content_type_mismatch";
  }
  const at = asked ?? source.records.length;
  const records = source.records.slice(0, at);
  const json = source.type === "application/json";
  if (json) {
    records.push(...source.records.slice(at, at + subOffset));
  } else if (subOffset > 0) {
    records.push(source.records[at]?.slice(0, subOffset) ?? "");
  }
  const reached = json ? at + subOffset <= source.records.length : true;
  const whole = json || subOffset <= (source.records[at]?.length ?? 0);
  if (at > source.records.length || !reached || !whole) {
    return "400 bad_offset";
  }
  const inherited = records.length;
  return {
    type: source.type,
    records,
    fork: { from, life: source.life, at, subOffset, inherited },
  };
}

export function naiveDelete(model: Naive, path: string): string {
  const stream = model.streams[path];
  if (stream === undefined) {
    return naiveAbsent(model, path);
  }
  delete model.streams[path];
  model.softDeleted[path] = stream;
  // Nobody counts: whoever is no living or kept stream's source goes, until all that are left are.
  for (let before = -1; before !== Object.keys(model.softDeleted).length;) {
    before = Object.keys(model.softDeleted).length;
    for (const [name, { life }] of Object.entries(model.softDeleted)) {
      const kept = [...Object.values(model.streams), ...Object.values(model.softDeleted)];
      if (!kept.some(({ fork }) => fork?.life === life)) {
        delete model.softDeleted[name];
      }
    }
  }
  return "204";
}

const naiveAbsent = (model: Naive, path: string): string =>
  model.softDeleted[path] === undefined ? "404 stream_not_found" : "410 stream_gone";

export interface FramePost {
  path: string;
  record: string;
  producer: Post["producer"];
}

/** One request of an outbox frame: a JSON value for a stream that is made when it is missing. */
export function naiveForward(model: Naive, { path, record, producer }: FramePost): void {
  if (model.softDeleted[path] !== undefined) {
    model.quarantined.push(`${path} stream_gone ${record}`);
    return;
  }
  const stream = (model.streams[path] ??= {
    type: "application/json",
    closed: false,
    records: [],
    streamSeq: null,
    producers: {},
    life: ++model.lives,
    fork: null,
  });
  const known = producer === null ? undefined : stream.producers[producer.id];
  const quarantine = (code: string): void =>
    void model.quarantined.push(`${path} ${code} ${record}`);
  const newest = known?.epoch === producer?.epoch ? Math.max(...(known?.seqs ?? [])) : -1;
  if (producer !== null && known !== undefined && producer.epoch < known.epoch) {
    quarantine("stale_epoch");
  } else if (
    producer !== null &&
    newest - producer.seq < 64 &&
    known?.epoch === producer.epoch &&
    known.seqs.includes(producer.seq)
  ) {
    return;
  } else if (stream.closed) {
    quarantine("stream_closed");
  } else if (stream.type !== "application/json") {
    quarantine("content_type_mismatch");
  } else if (producer !== null && newest - producer.seq >= 64) {
    quarantine("seq_too_old");
  } else {
    stream.records.push(record);
    if (producer !== null) {
      naiveSeq(stream, producer);
    }
  }
}
