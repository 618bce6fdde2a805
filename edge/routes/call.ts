import type { Context } from "hono";
import { keyMatches, requestKey } from "../../shared/auth/mod.ts";
import { ForebayError } from "../../shared/errors/mod.ts";
import { limits } from "../../shared/limits.ts";
import {
  header,
  isAllowedOrigin,
  isReservedPath,
  normalizeStreamPath,
} from "../../shared/protocol/mod.ts";
import type { PendingBudget } from "../batcher/mod.ts";
import type { Forwarding } from "../reader/mod.ts";
import { BodyHold, readBody } from "./body.ts";
import { settingsOf, type Env, type Settings } from "./env.ts";

/** One request with what every handler asks of it. */
export class Call {
  readonly request: Request;
  readonly env: Env;
  readonly settings: Settings;
  readonly #url: URL;
  readonly #context: Context<{ Bindings: Env }>;
  readonly #hold: BodyHold;

  /** @throws ForebayError `config_invalid`, `key_required`, `url_too_long`, `headers_too_large` */
  constructor(context: Context<{ Bindings: Env }>, bodies: PendingBudget) {
    this.request = context.req.raw;
    this.env = context.env;
    this.settings = settingsOf(context.env);
    this.#url = new URL(this.request.url);
    this.#context = context;
    this.#hold = new BodyHold(bodies);
    this.#checkShape();
  }

  /** Keeps this request's context alive for `work`, also when its client goes away. */
  readonly waitUntil = (work: Promise<unknown>): void => {
    this.#context.executionCtx.waitUntil(work);
  };

  header(name: string): string | null {
    return this.request.headers.get(name);
  }

  /**
   * A query parameter, null when absent.
   *
   * @throws ForebayError `bad_query` when it stands there twice
   */
  query(name: string): string | null {
    const all = this.#url.searchParams.getAll(name);
    if (all.length > 1) {
      throw new ForebayError("bad_query", `the query names ${name} ${all.length} times`);
    }
    return all[0] ?? null;
  }

  /** What follows a route's prefix, undecoded. */
  after(prefix: string): string {
    return this.#url.pathname.slice(prefix.length);
  }

  /**
   * The stream after `prefix`, normalised once, before authentication (P14).
   *
   * @throws ForebayError `bad_path`
   */
  stream(prefix: string): string {
    return normalizeStreamPath(this.after(prefix));
  }

  /** This request for the origin: under the normalised path, with the query as it came but for the client's key. */
  toOrigin(path: string, body: Uint8Array<ArrayBuffer> | null): Forwarding {
    let query = this.#url.search;
    if (this.#url.searchParams.has("key")) {
      const rest = new URLSearchParams(this.#url.searchParams);
      rest.delete("key");
      query = rest.size === 0 ? "" : `?${rest.toString()}`;
    }
    const { request, settings, waitUntil } = this;
    const keyed = this.#hasKey();
    return { request, target: path + query, body, link: settings.link, keyed, waitUntil };
  }

  /** The body, at most `bodyBytesMax`; throws as `readBody`. Its bytes count until `end`. */
  body(): Promise<Uint8Array<ArrayBuffer>> {
    return readBody(this.request, limits.bodyBytesMax, this.#hold);
  }

  /** The answer is made: what it took to make it is free again. */
  end(): void {
    this.#hold.release();
  }

  /**
   * The client's id of this batch (F11), from `Forebay-Batch-Id` or, for a beacon, `?batch=`.
   *
   * @throws ForebayError `bad_header` when it is empty, longer than `producerIdBytesMax` or not visible ASCII
   */
  batchId(): string | null {
    const id = this.header(header.batchId) ?? this.query("batch");
    if (id !== null && (id.length > limits.producerIdBytesMax || !/^[\x21-\x7e]+$/.test(id))) {
      const message = `the batch id ${JSON.stringify(id.slice(0, 64))} must be 1 to ${limits.producerIdBytesMax} visible ASCII characters`;
      throw new ForebayError("bad_header", message);
    }
    return id;
  }

  /**
   * The right to write, before a body byte is read or an outbox touched.
   *
   * @throws ForebayError `unauthorized`, `origin_not_allowed`
   */
  authorize(): void {
    const { key } = this.settings;
    if (key !== null && !this.#hasKey()) {
      throw new ForebayError(
        "unauthorized",
        "this needs the key, as `Authorization: Bearer <key>` or `?key=`",
        {
          headers: { "www-authenticate": "Bearer" },
        },
      );
    }
    this.checkWebOrigin();
  }

  /** @throws ForebayError `origin_not_allowed` */
  checkWebOrigin(): void {
    const origin = this.header("origin");
    if (origin !== null && !isAllowedOrigin(origin, this.settings.webOrigins)) {
      const message = `the web origin ${JSON.stringify(origin.slice(0, 200))} is not among those allowed here`;
      throw new ForebayError("origin_not_allowed", message);
    }
  }

  #hasKey(): boolean {
    const { key } = this.settings;
    const given = requestKey(this.header("authorization"), this.query("key"));
    return key !== null && keyMatches(given, key);
  }

  /** @throws ForebayError `reserved_path` */
  refuseReserved(stream: string): void {
    if (isReservedPath(stream)) {
      throw new ForebayError(
        "reserved_path",
        `${JSON.stringify(stream)} is written by Forebay alone`,
      );
    }
  }

  /** @throws ForebayError `unsupported_media_type`: bodies are taken as they are (I1 comes later) */
  refuseEncoded(): void {
    const encoding = this.header("content-encoding");
    if (encoding !== null && encoding !== "" && encoding.toLowerCase() !== "identity") {
      const message = `Content-Encoding ${JSON.stringify(encoding.slice(0, 64))} cannot be taken; send the body as it is`;
      throw new ForebayError("unsupported_media_type", message);
    }
  }

  #checkShape(): void {
    const target = this.#url.pathname.length + this.#url.search.length;
    if (target > limits.urlBytesMax) {
      throw new ForebayError(
        "url_too_long",
        `the URL has ${target} bytes, the limit is ${limits.urlBytesMax}`,
      );
    }
    let bytes = 0;
    for (const [name, value] of this.request.headers) {
      bytes += name.length + value.length + 4;
    }
    if (bytes > limits.headerBytesMax) {
      const message = `the header fields have ${bytes} bytes, the limit is ${limits.headerBytesMax}`;
      throw new ForebayError("headers_too_large", message);
    }
  }
}
