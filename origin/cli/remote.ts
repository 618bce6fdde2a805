import { Agent, request, type Dispatcher } from "undici";
import { catalogue, ForebayError, type ErrorCode } from "../../shared/errors/mod.ts";
import { header, streamPrefix } from "../../shared/protocol/mod.ts";

/** One answer to a read, whole: the server cuts what it sends at 4 MiB. */
export interface ReadAnswer {
  readonly contentType: string;
  readonly body: Uint8Array;
  readonly next: string;
  readonly upToDate: boolean;
  readonly closed: boolean;
  readonly cursor: string | null;
}

export interface ReadOptions {
  readonly offset: string;
  readonly longPoll?: boolean;
  readonly cursor?: string | null;
}

/** One stream as `GET /v1/streams` lists it. */
export interface Listing {
  readonly path: string;
  readonly contentType: string;
  readonly tail: string;
  readonly closed: boolean;
  readonly ttlSeconds: number | null;
  readonly expiresAt: string | null;
}

export interface ListPage {
  readonly streams: readonly Listing[];
  readonly next: string | null;
}

/** Above the longest long-poll there can be, so that only a dead peer runs into it. */
const answerMsMax = 330_000;

/** A running origin or edge, as the commands talk to it. All failures are ForebayErrors. */
export class Remote {
  readonly #url: string;
  readonly #key: string | null;
  readonly #agent = new Agent({ headersTimeout: answerMsMax, bodyTimeout: answerMsMax });

  constructor(url: string, key: string | null) {
    this.#url = url.replace(/\/+$/, "");
    this.#key = key;
  }

  async close(): Promise<void> {
    await this.#agent.destroy();
  }

  /** The stream's content type. */
  async head(stream: string): Promise<string> {
    const answer = await this.#send("HEAD", streamTarget(stream), {});
    await answer.body.dump();
    // HEAD's refusals have no body to say more.
    if (answer.statusCode === 404) {
      throw new ForebayError(
        "stream_not_found",
        `there is no stream ${JSON.stringify(stream)} at ${this.#url}`,
      );
    }
    if (answer.statusCode === 410) {
      throw new ForebayError("stream_gone", `the stream ${JSON.stringify(stream)} was deleted`);
    }
    if (answer.statusCode === 401) {
      throw new ForebayError(
        "unauthorized",
        `${this.#url} wants a key, and ${this.#key === null ? "none was given" : "not this one"}`,
      );
    }
    if (answer.statusCode >= 400) {
      throw new ForebayError(
        "internal",
        `HEAD of ${JSON.stringify(stream)} was answered ${answer.statusCode}`,
      );
    }
    return first(answer.headers["content-type"]) ?? "application/octet-stream";
  }

  async create(stream: string, contentType: string): Promise<void> {
    await this.#body(
      await this.#send("PUT", streamTarget(stream), { "content-type": contentType }),
    );
  }

  /** Appends and returns the stream's next offset. */
  async append(stream: string, contentType: string, body: Uint8Array): Promise<string> {
    const answer = await this.#send(
      "POST",
      streamTarget(stream),
      { "content-type": contentType },
      body,
    );
    await this.#body(answer);
    return first(answer.headers[header.nextOffset]) ?? "";
  }

  async read(stream: string, options: ReadOptions): Promise<ReadAnswer> {
    const query = new URLSearchParams({ offset: options.offset });
    if (options.longPoll === true) {
      query.set("live", "long-poll");
    }
    if (options.cursor !== null && options.cursor !== undefined) {
      query.set("cursor", options.cursor);
    }
    const answer = await this.#send("GET", `${streamTarget(stream)}?${query}`, {});
    const body = await this.#body(answer);
    const { headers } = answer;
    return {
      contentType: first(headers["content-type"]) ?? "application/octet-stream",
      body,
      next: first(headers[header.nextOffset]) ?? options.offset,
      upToDate: headers[header.upToDate] === "true",
      closed: headers[header.closed] === "true",
      cursor: first(headers[header.cursor]) ?? null,
    };
  }

  /** One page of streams in path order; `next` is the `after` of the following page, null at the end. */
  async list(prefix: string, after: string, limit: number): Promise<ListPage> {
    const query = new URLSearchParams({ prefix, after, limit: String(limit) });
    const bytes = await this.#body(await this.#send("GET", `/v1/streams?${query}`, {}));
    return JSON.parse(Buffer.from(bytes).toString("utf8"));
  }

  /** What a JSON endpoint answers. */
  async getJson(target: string): Promise<unknown> {
    const bytes = await this.#body(await this.#send("GET", target, {}));
    return JSON.parse(Buffer.from(bytes).toString("utf8"));
  }

  /** The same for a POST without a body. */
  async postJson(target: string): Promise<unknown> {
    const bytes = await this.#body(await this.#send("POST", target, {}));
    return JSON.parse(Buffer.from(bytes).toString("utf8"));
  }

  async #send(
    method: Dispatcher.HttpMethod,
    target: string,
    headers: Record<string, string>,
    body?: Uint8Array,
  ): Promise<Dispatcher.ResponseData> {
    const auth = this.#key === null ? {} : { authorization: `Bearer ${this.#key}` };
    try {
      return await request(this.#url + target, {
        method,
        headers: { ...headers, ...auth },
        dispatcher: this.#agent,
        ...(body === undefined ? {} : { body }),
      });
    } catch (cause) {
      throw this.#connectionError(method, cause);
    }
  }

  async #body(answer: Dispatcher.ResponseData): Promise<Uint8Array> {
    let bytes: Uint8Array;
    try {
      bytes = await answer.body.bytes();
    } catch (cause) {
      throw this.#connectionError("GET", cause);
    }
    if (answer.statusCode < 400) {
      return bytes;
    }
    const retryAfter = Number(first(answer.headers["retry-after"]));
    throw problemError(answer.statusCode, bytes, Number.isFinite(retryAfter) ? retryAfter : 1);
  }

  /** A write that broke off after it was sent may have been stored; a refused connection stored nothing. */
  #connectionError(method: string, cause: unknown): ForebayError {
    const code = errorCodeOf(cause);
    const sent =
      code !== "ECONNREFUSED" && code !== "ENOTFOUND" && code !== "UND_ERR_CONNECT_TIMEOUT";
    const why = code ?? (cause instanceof Error ? cause.message : String(cause));
    return sent && method === "POST"
      ? new ForebayError(
          "outcome_unknown",
          `the connection to ${this.#url} broke (${why}) before the answer came`,
          { cause },
        )
      : new ForebayError("origin_unreachable", `${this.#url} does not answer (${why})`, { cause });
  }
}

function streamTarget(stream: string): string {
  return streamPrefix + stream.replace(/^\/+/, "").split("/").map(encodeURIComponent).join("/");
}

function first(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value;
}

function errorCodeOf(cause: unknown): string | undefined {
  if (cause instanceof AggregateError) {
    return errorCodeOf(cause.errors[0]);
  }
  return cause instanceof Error && "code" in cause && typeof cause.code === "string"
    ? cause.code
    : undefined;
}

/** The server's problem document as the error it was there. */
function problemError(status: number, bytes: Uint8Array, retryAfterSeconds: number): ForebayError {
  const text = Buffer.from(bytes).toString("utf8");
  try {
    const problem: { code?: unknown; detail?: unknown } = JSON.parse(text);
    if (typeof problem.code === "string" && isErrorCode(problem.code)) {
      return new ForebayError(problem.code, String(problem.detail), { retryAfterSeconds });
    }
  } catch {
    // Not ours: said as it came.
  }
  return new ForebayError("internal", `the answer was ${status}: ${text.slice(0, 200)}`);
}

function isErrorCode(code: string): code is ErrorCode {
  return Object.hasOwn(catalogue, code);
}
