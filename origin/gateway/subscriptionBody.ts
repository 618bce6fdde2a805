import { ForebayError } from "../../shared/errors/mod.ts";
import { limits } from "../../shared/limits.ts";
import { isReservedPath, normalizeStreamPath } from "../../shared/protocol/mod.ts";
import { utf8Bytes, utf8Text } from "../../shared/utf8/mod.ts";
import { Glob, type Definition, type Target, type WakeReport } from "../subscription/mod.ts";

type Fields = Readonly<Record<string, unknown>>;

/** The JSON object of a body; an empty body is an empty one. @throws ForebayError `bad_utf8` | `bad_json` | `bad_subscription` */
export function fieldsOf(body: Uint8Array): Fields {
  const text = utf8Text(body);
  if (text === undefined) {
    throw new ForebayError("bad_utf8", "the body is not UTF-8");
  }
  let value: unknown;
  try {
    value = text === "" ? {} : JSON.parse(text);
  } catch (cause) {
    throw new ForebayError("bad_json", `the body is not JSON: ${String(cause)}`, { cause });
  }
  if (!isObject(value)) {
    throw invalid("the body", value, "an object");
  }
  return value;
}

/** Of a PUT. @throws ForebayError `bad_subscription` | `bad_path` */
export function definitionOf(fields: Fields): Definition {
  const { type, pattern } = fields;
  if (type !== "webhook" && type !== "pull-wake") {
    throw invalid("type", type, '"webhook" or "pull-wake"');
  }
  const glob =
    pattern === undefined || pattern === ""
      ? null
      : new Glob(trimmed(textOf("pattern", pattern, limits.globBytesMax)));
  const streams = fields["streams"] === undefined ? [] : streamsOf(fields);
  if (glob === null && streams.length === 0) {
    throw new ForebayError("bad_subscription", "a subscription needs a pattern, streams, or both");
  }
  const target = targetOf(type, fields);
  if (target.kind === "pull-wake" && streams.includes(target.stream)) {
    const message = `${JSON.stringify(target.stream)} is where its own wakes go, it cannot be followed`;
    throw new ForebayError("bad_subscription", message);
  }
  return { target, glob, streams, leaseMs: leaseOf(fields), description: descriptionOf(fields) };
}

function targetOf(kind: Target["kind"], fields: Fields): Target {
  if (kind === "pull-wake") {
    return { kind, stream: streamPath("wake_stream", fields["wake_stream"]) };
  }
  const webhook = fields["webhook"];
  if (!isObject(webhook)) {
    throw invalid("webhook", webhook, "an object with a url");
  }
  return { kind, url: textOf("webhook.url", webhook["url"], limits.subscriptionBodyBytesMax) };
}

function leaseOf({ lease_ttl_ms: lease = limits.leaseMsDefault }: Fields): number {
  const { leaseMsMin, leaseMsMax } = limits;
  if (
    typeof lease !== "number" ||
    !Number.isInteger(lease) ||
    lease < leaseMsMin ||
    lease > leaseMsMax
  ) {
    throw invalid("lease_ttl_ms", lease, `a whole number from ${leaseMsMin} to ${leaseMsMax}`);
  }
  return lease;
}

function descriptionOf({ description }: Fields): string | null {
  return description === undefined || description === null || description === ""
    ? null
    : textOf("description", description, limits.subscriptionDescriptionBytesMax);
}

/** The streams that a body names. @throws ForebayError `bad_subscription` | `bad_path` */
export function streamsOf({ streams }: Fields): string[] {
  if (!Array.isArray(streams) || streams.length > limits.subscriptionRequestStreamsMax) {
    const most = limits.subscriptionRequestStreamsMax;
    throw invalid("streams", streams, `a list of at most ${most} stream paths`);
  }
  return streams.map((path: unknown) => streamPath("streams", path));
}

/** Who claims. @throws ForebayError `bad_subscription` */
export function workerOf({ worker }: Fields): string {
  return textOf("worker", worker, limits.workerNameBytesMax);
}

/** Of a callback, an ack or a release. @throws ForebayError `bad_subscription` | `bad_path` */
export function reportOf(token: string, fields: Fields): WakeReport {
  const { generation, acks = [], done = false } = fields;
  if (typeof generation !== "number") {
    throw invalid("generation", generation, "a number");
  }
  if (typeof done !== "boolean") {
    throw invalid("done", done, "true or false");
  }
  if (!Array.isArray(acks) || acks.length > limits.subscriptionRequestStreamsMax) {
    throw invalid("acks", acks, `a list of at most ${limits.subscriptionRequestStreamsMax}`);
  }
  return {
    token,
    wakeId: textOf("wake_id", fields["wake_id"], limits.subscriptionIdBytesMax),
    generation,
    acks: acks.map(ackOf),
    done,
  };
}

function ackOf(ack: unknown): WakeReport["acks"][number] {
  if (!isObject(ack)) {
    throw invalid("acks", ack, "objects with a stream and an offset");
  }
  const path = streamPath("acks.stream", ack["stream"] ?? ack["path"]);
  return { path, offset: textOf("acks.offset", ack["offset"], limits.subscriptionIdBytesMax) };
}

/** A stream's path in a body is spelled as in a URL; slashes around it do not count. */
function streamPath(name: string, value: unknown): string {
  const path = normalizeStreamPath(trimmed(textOf(name, value, limits.streamPathBytesMax * 3)));
  if (isReservedPath(path)) {
    throw invalid(name, path, "a stream that is not Forebay's own");
  }
  return path;
}

const trimmed = (path: string): string => path.replace(/^\/+/, "").replace(/\/+$/, "");

function textOf(name: string, value: unknown, bytesMax: number): string {
  if (typeof value !== "string" || value === "" || utf8Bytes(value).length > bytesMax) {
    throw invalid(name, value, `text of 1 to ${bytesMax} bytes`);
  }
  return value;
}

function isObject(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function invalid(name: string, value: unknown, wanted: string): ForebayError {
  return new ForebayError("bad_subscription", `${name} is ${found(value)}, it must be ${wanted}`);
}

/** Objects are not shown: they may be nested deeper than anything can write them out. */
function found(value: unknown): string {
  if (typeof value === "object" && value !== null) {
    return Array.isArray(value) ? `a list of ${value.length}` : "an object";
  }
  return value === undefined ? "missing" : JSON.stringify(value).slice(0, 100);
}
