import { HeaderBlock } from "../front/mod.ts";
import { ForebayError } from "../../shared/errors/mod.ts";
import {
  corsHeaders,
  isAllowedOrigin,
  preflightHeaders,
  securityHeaders,
  type AllowedOrigins,
} from "../../shared/protocol/mod.ts";

/** The header fields of every answer, ready to be written (P13, I5). */
export class WebHeaders {
  readonly #allowed: AllowedOrigins;
  /** For programs, which send no Origin, and for pages of an origin that is not allowed to read. */
  readonly #plain: HeaderBlock;
  /** For the page origin asked for last: pages come in bursts. */
  #latest: HeaderBlock;
  #latestOrigin: string | null = null;

  constructor(allowed: AllowedOrigins) {
    this.#allowed = allowed;
    this.#plain = new HeaderBlock(flat({ ...securityHeaders, ...corsHeaders(null, allowed) }));
    this.#latest = this.#plain;
  }

  forOrigin(origin: string | null): HeaderBlock {
    if (origin === null) {
      return this.#plain;
    }
    if (origin !== this.#latestOrigin) {
      const cors = corsHeaders(origin, this.#allowed);
      this.#latest =
        cors === null ? this.#plain : new HeaderBlock(flat({ ...securityHeaders, ...cors }));
      this.#latestOrigin = origin;
    }
    return this.#latest;
  }

  forPreflight(origin: string | null): readonly string[] {
    return flat(preflightHeaders(origin, this.#allowed));
  }

  /**
   * A page may write only from an allowed origin; CORS alone would hide the answer but let the write happen.
   *
   * @throws ForebayError `origin_not_allowed`
   */
  checkOrigin(origin: string | null): void {
    if (origin !== null && !isAllowedOrigin(origin, this.#allowed)) {
      const message = `pages of ${JSON.stringify(origin.slice(0, 200))} may not write here; allowed origins are configured`;
      throw new ForebayError("origin_not_allowed", message);
    }
  }
}

export function flat(fields: Readonly<Record<string, string>>): string[] {
  return Object.entries(fields).flat();
}
