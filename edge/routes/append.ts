import { ForebayError } from "../../shared/errors/mod.ts";
import { requestFlag, type FrameRequest } from "../../shared/frame/mod.ts";
import { splitJson } from "../../shared/ingest/mod.ts";
import {
  header,
  isJson,
  mediaType,
  parseAck,
  parseProducer,
  parseStreamSeq,
  streamPrefix,
  type AckLevel,
} from "../../shared/protocol/mod.ts";
import type { Call } from "./call.ts";
import { outboxOf } from "./env.ts";
import { refuseTooLargeForOutbox } from "./records.ts";
import { acceptedReply, resultReply } from "./reply.ts";
import type { Services } from "./services.ts";

/**
 * `POST /v1/stream/<path>`. With `ack=origin`, the default, appends of many requests share a direct frame and each gets its
 * own status, fields and true `Stream-Next-Offset`; what a frame cannot say (closing, an expected offset) or would not get
 * past the origin's door is passed on as it is, so that the answer is the origin's own.
 */
export async function append(call: Call, services: Services): Promise<Response> {
  const stream = call.stream(streamPrefix);
  call.authorize();
  call.refuseReserved(stream);
  call.refuseEncoded();
  const ack = parseAck(call.query("ack"), call.header(header.ack), "origin");
  const body = await call.body();
  const obstacle = frameObstacle(call, ack, body);
  if (obstacle !== null && ack === "origin") {
    return await services.reader.forward(call.toOrigin(streamPrefix + stream, body));
  }
  if (obstacle !== null) {
    throw obstacle;
  }
  const request = appendRequest(call, services, stream, body);
  return await answers[ack](call, services, request);
}

/** Why this append cannot go in a frame, or null. */
function frameObstacle(call: Call, ack: AckLevel, body: Uint8Array): ForebayError | null {
  const needOrigin = [
    header.closed,
    header.expectedOffset,
    ...(ack === "origin" ? [] : [header.seq]),
  ];
  const named = needOrigin.find((name) => call.header(name) !== null);
  if (named !== undefined) {
    return new ForebayError(
      "ack_unavailable",
      `${named} needs the stream's own state: it goes with ack=origin, not ack=${ack}`,
    );
  }
  if (body.length === 0) {
    return new ForebayError("empty_body", "an append needs a body");
  }
  const contentType = call.header("content-type");
  if (contentType === null) {
    return new ForebayError("missing_content_type", "an append with a body needs a Content-Type");
  }
  try {
    mediaType(contentType);
    return null;
  } catch (error) {
    return error as ForebayError;
  }
}

function appendRequest(
  call: Call,
  services: Services,
  stream: string,
  body: Uint8Array,
): FrameRequest {
  return {
    stream,
    flags: 0,
    acceptedAt: services.clock.now(),
    contentType: call.header("content-type"),
    producer: parseProducer(
      call.header(header.producerId),
      call.header(header.producerEpoch),
      call.header(header.producerSeq),
    ),
    streamSeq: parseStreamSeq(call.header(header.seq)),
    records: [body],
  };
}

type Answer = (call: Call, services: Services, request: FrameRequest) => Promise<Response>;

const answers: Readonly<Record<AckLevel, Answer>> = {
  async none(call, services, request) {
    const work = services.writers.appendAtOrigin(request, call.settings.link, call.waitUntil);
    call.waitUntil(services.unacknowledged.watch(work));
    return acceptedReply("none", null);
  },
  async edge(call, services, request) {
    const checked = isJson(mediaType(request.contentType ?? ""))
      ? withJsonRecords(request)
      : request;
    refuseTooLargeForOutbox(checked);
    const outboxRequest = { request: checked, batchId: call.batchId() };
    const place = outboxOf(call.env, call.settings, request.stream);
    const { position } = await services.writers.appendAtOutbox(
      outboxRequest,
      place,
      call.waitUntil,
    );
    return acceptedReply("edge", position);
  },
  async origin(call, services, request) {
    return resultReply(
      await services.writers.appendAtOrigin(request, call.settings.link, call.waitUntil),
    );
  },
};

/**
 * JSON is split and checked here: its sender is not there any more to hear the origin refuse it.
 *
 * @throws ForebayError `bad_json` and its kin, `empty_array`
 */
function withJsonRecords(request: FrameRequest): FrameRequest {
  const records = request.records.flatMap((body) => splitJson(body));
  if (records.length === 0) {
    throw new ForebayError("empty_array", "the JSON array holds no record");
  }
  return { ...request, flags: requestFlag.json, records };
}
