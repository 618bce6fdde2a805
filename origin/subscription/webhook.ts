import type { LookupAddress, LookupOptions } from "node:dns";
import { lookup } from "node:dns/promises";
import { isIP, type LookupFunction } from "node:net";
import { Agent, buildConnector, request, type Dispatcher } from "undici";
import { limits } from "../../shared/limits.ts";
import type { AddressPolicy } from "./addresses.ts";
import type { PostWebhook, WebhookAnswer } from "./types.ts";

/** All addresses of a host name. */
export type Resolve = (host: string) => Promise<readonly LookupAddress[]>;

export interface WebhookClient {
  readonly post: PostWebhook;
  /** Breaks off what is in flight. */
  close(): Promise<void>;
}

const connectMsMax = 5000;
const systemResolver: Resolve = (host) => lookup(host, { all: true, verbatim: true });

/**
 * Sends webhooks. The guard against calls into a private network (SSRF) stands where the connection is made: a name is
 * resolved once per connection, the addresses that may not be called are taken out, and the socket connects to one of
 * those left. Nothing resolves the name again in between, and no connection is used twice, so what a name server says
 * later changes nothing. Redirects are not followed: they are an answer like any other.
 */
export function createWebhookClient(
  policy: AddressPolicy,
  resolve: Resolve = systemResolver,
): WebhookClient {
  const agent = new Agent({
    connect: guardedConnect(policy, resolve),
    // One request a connection.
    pipelining: 0,
    headersTimeout: limits.webhookMsMax,
    bodyTimeout: limits.webhookMsMax,
    maxHeaderSize: limits.headerBytesMax,
  });
  return {
    post: (post, signal) => send(agent, post, signal),
    close: () => agent.destroy(),
  };
}

function guardedConnect(policy: AddressPolicy, resolve: Resolve): buildConnector.connector {
  const connect = buildConnector({
    timeout: connectMsMax,
    lookup: guardedLookup(policy, resolve),
  });
  return function connectGuarded(options, callback): void {
    const host = options.hostname.replace(/^\[|\]$/g, "");
    // A literal address is connected to without a look-up.
    if (isIP(host) !== 0 && !policy.allows(host, host)) {
      callback(refused(host, host), null);
      return;
    }
    connect(options, callback);
  };
}

function guardedLookup(policy: AddressPolicy, resolve: Resolve): LookupFunction {
  return function lookupGuarded(host: string, options: LookupOptions, callback): void {
    const bare = host.replace(/\.$/, "");
    void resolve(host).then(
      (found) => {
        const wanted = options.family === 4 || options.family === 6 ? options.family : null;
        const allowed = found.filter(
          ({ address, family }) =>
            policy.allows(bare, address) && (wanted === null || family === wanted),
        );
        const [first] = allowed;
        if (first === undefined) {
          callback(refused(host, found.map(({ address }) => address).join(", ")), "");
        } else if (options.all === true) {
          callback(null, [...allowed]);
        } else {
          callback(null, first.address, first.family);
        }
      },
      (error: unknown) => callback(error as NodeJS.ErrnoException, ""),
    );
  };
}

function refused(host: string, addresses: string): Error {
  return new Error(`${host} may not be called: ${addresses || "no address"} is not public`);
}

async function send(
  agent: Agent,
  { url, body, signature }: Parameters<PostWebhook>[0],
  signal: AbortSignal,
): Promise<WebhookAnswer> {
  const response = await request(url, {
    dispatcher: agent,
    method: "POST",
    headers: { "content-type": "application/json", "webhook-signature": signature },
    body,
    signal,
  });
  const text = await boundedText(response.body);
  return {
    status: response.statusCode,
    done: saysDone(text),
    retryAfterMs: retryAfterMs(response.headers["retry-after"]),
  };
}

/** The body, or null when it is longer than anything we would understand: then the rest is not read. */
async function boundedText(body: Dispatcher.ResponseData["body"]): Promise<string | null> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > limits.webhookAnswerBytesMax) {
      // Leaving the loop destroys the body and its connection.
      return null;
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

function saysDone(text: string | null): boolean {
  try {
    const value: unknown = JSON.parse(text ?? "");
    return typeof value === "object" && value !== null && "done" in value && value.done === true;
  } catch {
    return false;
  }
}

/** Seconds only (RFC 9110 §10.2.3); a date is as good as none. */
function retryAfterMs(field: string | string[] | undefined): number | null {
  return typeof field === "string" && /^\d{1,6}$/.test(field) ? Number(field) * 1000 : null;
}
