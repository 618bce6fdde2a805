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
}
export interface Naive {
  streams: Record<string, NaiveStream>;
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
    return "404 stream_not_found";
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

export function naivePut(
  model: Naive,
  path: string,
  type: string,
  closed: boolean,
  body: string,
): string {
  const stream = model.streams[path];
  if (stream !== undefined) {
    return stream.type === type && stream.closed === closed ? "200" : "409 stream_conflict";
  }
  const records = body === "" || body === "[]" ? [] : values(type, body);
  if (typeof records === "string") {
    return records;
  }
  const all = body === "[]" && type !== "application/json" ? ["[]"] : records;
  model.lives += 1;
  const life = model.lives;
  model.streams[path] = { type, closed, records: all, streamSeq: null, producers: {}, life };
  return "201";
}

export interface FramePost {
  path: string;
  record: string;
  producer: Post["producer"];
}

/** One request of an outbox frame: a JSON value for a stream that is made when it is missing. */
export function naiveForward(model: Naive, { path, record, producer }: FramePost): void {
  const stream = (model.streams[path] ??= {
    type: "application/json",
    closed: false,
    records: [],
    streamSeq: null,
    producers: {},
    life: ++model.lives,
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
