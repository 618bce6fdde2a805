import { ForebayError } from "../../shared/errors/mod.ts";
import { requestFlag, type FrameRequest } from "../../shared/frame/mod.ts";
import {
  ingestAnswerJson,
  ingestStatus,
  parseIngest,
  type IngestAnswer,
  type Parsed,
} from "../../shared/ingest/mod.ts";
import {
  header,
  ingestPrefix,
  parseAck,
  parseProducer,
  type AckLevel,
} from "../../shared/protocol/mod.ts";
import type { Call } from "./call.ts";
import { outboxOf } from "./env.ts";
import { outboxRecordBytesMax, refuseTooLargeForOutbox, tooLongMessage } from "./records.ts";
import { resultReply } from "./reply.ts";
import type { Services } from "./services.ts";

/**
 * `POST /v1/ingest/<stream>`: the good records of a JSON array, of lines, or of a beacon; each bad one named (I2). A missing
 * stream is created as `application/json`. A beacon sets no header, so key, producer and batch id may stand in the query:
 * `?key=&producerId=&epoch=&seq=&batch=`.
 */
export async function ingest(call: Call, services: Services): Promise<Response> {
  const stream = call.stream(ingestPrefix);
  call.authorize();
  call.refuseReserved(stream);
  call.refuseEncoded();
  const ack = parseAck(call.query("ack"), call.header(header.ack), "edge");
  const batchId = batchIdFor(call, ack);
  const empty: FrameRequest = {
    stream,
    flags: requestFlag.create | requestFlag.json,
    acceptedAt: services.clock.now(),
    contentType: "application/json",
    producer: parseProducer(
      call.header(header.producerId) ?? call.query("producerId"),
      call.header(header.producerEpoch) ?? call.query("epoch"),
      call.header(header.producerSeq) ?? call.query("seq"),
    ),
    streamSeq: null,
    records: [],
  };
  const whole = parseIngest(await call.body(), call.header("content-type"));
  const parsed = ack === "origin" ? whole : fitting(whole, outboxRecordBytesMax(empty));
  if (parsed.records.length === 0) {
    return answerReply(parsed, { ack, deduplicated: 0 });
  }
  const request = { ...empty, records: parsed.records.map((record) => record.bytes) };
  return await answers[ack](call, services, { parsed, request, batchId });
}

interface Ingested {
  readonly parsed: Parsed;
  readonly request: FrameRequest;
  readonly batchId: string | null;
}

type Answer = (call: Call, services: Services, ingested: Ingested) => Promise<Response>;

const answers: Readonly<Record<AckLevel, Answer>> = {
  async none(call, services, { parsed, request, batchId }) {
    refuseTooLargeForOutbox(request);
    const place = outboxOf(call.env, call.settings, request.stream);
    const work = services.writers.appendAtOutbox({ request, batchId }, place, call.waitUntil);
    call.waitUntil(services.unacknowledged.watch(work));
    return answerReply(parsed, { ack: "none", deduplicated: 0 });
  },
  async edge(call, services, { parsed, request, batchId }) {
    refuseTooLargeForOutbox(request);
    const place = outboxOf(call.env, call.settings, request.stream);
    const taken = await services.writers.appendAtOutbox(
      { request, batchId },
      place,
      call.waitUntil,
    );
    const deduplicated = taken.deduplicated ? parsed.records.length : 0;
    return answerReply(parsed, { ack: "edge", deduplicated, position: taken.position });
  },
  async origin(call, services, { parsed, request }) {
    const result = await services.writers.appendAtOrigin(
      request,
      call.settings.link,
      call.waitUntil,
    );
    if (result.code !== null) {
      return resultReply(result);
    }
    // A producer's request that is stored is answered 200, one that was stored before 204.
    const repeated = request.producer !== null && result.status === 204;
    const nextOffset = result.headers[header.nextOffset];
    return answerReply(parsed, {
      ack: result.headers[header.ack] === "memory" ? "memory" : "origin",
      deduplicated: repeated ? parsed.records.length : 0,
      ...(nextOffset === undefined ? {} : { nextOffset }),
    });
  },
};

/**
 * Only an outbox remembers batch ids. Without one the id would promise what nobody keeps.
 *
 * @throws ForebayError `ack_unavailable`, `bad_header`
 */
function batchIdFor(call: Call, ack: AckLevel): string | null {
  const batchId = call.batchId();
  if (batchId !== null && ack === "origin") {
    throw new ForebayError(
      "ack_unavailable",
      "a batch id is remembered by the outbox: send it with ack=edge, or a producer id, epoch and seq with ack=origin",
    );
  }
  return batchId;
}

/** Records that no frame can hold join the refused ones. */
function fitting(parsed: Parsed, bytesMax: number): Parsed {
  const tooLong = parsed.records.filter((record) => record.bytes.length > bytesMax);
  if (tooLong.length === 0) {
    return parsed;
  }
  const refused = tooLong.map(({ bytes, index }) => ({
    index,
    code: "record_too_large" as const,
    message: tooLongMessage(bytes, index, bytesMax),
  }));
  return {
    received: parsed.received,
    records: parsed.records.filter((record) => record.bytes.length <= bytesMax),
    refused: [...parsed.refused, ...refused].toSorted((a, b) => a.index - b.index),
  };
}

function answerReply(
  parsed: Parsed,
  outcome: Omit<IngestAnswer, keyof Parsed | "accepted">,
): Response {
  const { received, records, refused } = parsed;
  const answer: IngestAnswer = {
    received,
    accepted: records.length - outcome.deduplicated,
    refused,
    ...outcome,
  };
  const headers: Record<string, string> = {
    "content-type": "application/json",
    "cache-control": "no-store",
    [header.ack]: answer.ack,
  };
  if (answer.position !== undefined) {
    headers[header.position] = answer.position;
  }
  if (answer.nextOffset !== undefined) {
    headers[header.nextOffset] = answer.nextOffset;
  }
  return new Response(ingestAnswerJson(answer), { status: ingestStatus(answer), headers });
}
