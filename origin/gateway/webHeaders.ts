import { ForebayError } from "../../shared/errors/mod.ts";
import {
  corsHeaders,
  isAllowedOrigin,
  preflightHeaders,
  securityHeaders,
  type AllowedOrigins,
} from "../../shared/protocol/mod.ts";

/** The header fields of every answer, as flat lists ready to be written (P13, I5). */
export class WebHeaders {
  readonly #allowed: AllowedOrigins;
  /** For programs, which send no Origin, and for pages of an origin that is not allowed to read. */
  readonly #plain: readonly string[];

  constructor(allowed: AllowedOrigins) {
    this.#allowed = allowed;
    this.#plain = flat({ ...securityHeaders, ...corsHeaders(null, allowed) });
  }

  forOrigin(origin: string | null): readonly string[] {
    if (origin === null) {
      return this.#plain;
    }
    const cors = corsHeaders(origin, this.#allowed);
    return cors === null ? this.#plain : flat({ ...securityHeaders, ...cors });
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
