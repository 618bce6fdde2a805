import {
  ingestAnswerJson,
  ingestStatus,
  parseIngest,
  type IngestAnswer,
  type Parsed,
} from "../../shared/ingest/mod.ts";
import { header, ingestPrefix, normalizeStreamPath, parseAck } from "../../shared/protocol/mod.ts";
import type { ProducerTag } from "../../shared/frame/mod.ts";
import { ForebayError } from "../../shared/errors/mod.ts";
import type { Verdict } from "../stream/mod.ts";
import { bodyOf } from "./body.ts";
import type { Exchange } from "./exchange.ts";
import { durable } from "./gate.ts";
import { producerOf } from "./producer.ts";
import { verdictReply, type Reply } from "./reply.ts";

/** `POST /v1/ingest/<path>`: the good records of a body, each bad one named (I2). */
export async function ingest(exchange: Exchange): Promise<Reply> {
  const { context, head, target } = exchange;
  exchange.route = "ingest";
  const path = normalizeStreamPath(target.path.slice(ingestPrefix.length));
  exchange.checkWriter();
  // What the edge would answer from its outbox, an origin answers with the stronger level.
  const ack = parseAck(target.one("ack"), head.get(header.ack), "edge");
  const producer = producerOf(head, target);
  const body = await bodyOf(exchange, context.settings.bodyBytesMax);
  const parsed = parseIngest(body, head.get("content-type"));
  context.counters.recordsReceived += parsed.received;
  context.counters.recordsRefused += parsed.refused.length;
  if (parsed.records.length === 0) {
    return answerReply(parsed, { ack: context.durableAck, deduplicated: 0 }, null);
  }
  const request: Ingested = { path, parsed, producer };
  if (ack === "none") {
    storeUnacknowledged(exchange, request);
    return answerReply(parsed, { ack: "none", deduplicated: 0 }, null);
  }
  const verdict = store(exchange, request);
  await durable(context.streams, verdict.lsn);
  if (verdict.code !== null) {
    return verdictReply(verdict, context.durableAck);
  }
  const deduplicated = isDuplicate(request, verdict) ? parsed.records.length : 0;
  return answerReply(parsed, { ack: context.durableAck, deduplicated }, verdict);
}

interface Ingested {
  readonly path: string;
  readonly parsed: Parsed;
  readonly producer: ProducerTag | null;
}

/** A producer's request that is stored is answered 200, one that was stored before 204. */
function isDuplicate({ producer }: Ingested, verdict: Verdict): boolean {
  return producer !== null && verdict.status === 204;
}

/** Stores the records and keeps the ledger. @throws ForebayError of the journal */
function store(exchange: Exchange, request: Ingested): Verdict {
  const { counters, streams } = exchange.context;
  const { path, parsed, producer } = request;
  const records = parsed.records.map((record) => record.bytes);
  // Counted as refused until they are not, so that an exception leaves the ledger right.
  counters.recordsRefused += records.length;
  const ingested = { path, contentType: "application/json", records, producer, create: true };
  const verdict = streams.ingest(ingested);
  if (verdict.code === null) {
    counters.recordsRefused -= records.length;
    counters.recordsDeduplicated += isDuplicate(request, verdict) ? records.length : 0;
  }
  return verdict;
}

function storeUnacknowledged(exchange: Exchange, request: Ingested): void {
  const { counters } = exchange.context;
  counters.unacknowledged++;
  try {
    if (store(exchange, request).code !== null) {
      counters.unacknowledgedRefused++;
    }
  } catch (error) {
    if (!(error instanceof ForebayError)) {
      throw error;
    }
    counters.unacknowledgedRefused++;
  }
}

function answerReply(
  { received, records, refused }: Parsed,
  { ack, deduplicated }: Pick<IngestAnswer, "ack" | "deduplicated">,
  verdict: Verdict | null,
): Reply {
  const at = verdict?.headers.indexOf(header.nextOffset) ?? -1;
  const nextOffset = at === -1 ? undefined : verdict?.headers[at + 1];
  const answer: IngestAnswer = {
    received,
    accepted: records.length - deduplicated,
    refused,
    deduplicated,
    ack,
    ...(nextOffset === undefined ? {} : { nextOffset }),
  };
  const headers = [
    "content-type",
    "application/json",
    "cache-control",
    "no-store",
    header.ack,
    ack,
  ];
  headers.push(...(verdict?.headers ?? []));
  return { status: ingestStatus(answer), headers, body: ingestAnswerJson(answer) };
}
