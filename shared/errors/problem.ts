import { catalogue, type ErrorCode } from "./catalogue.ts";
import type { ForebayError } from "./error.ts";

/** RFC 9457 problem details plus Forebay's `code` and `retryable`. */
export interface Problem {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  readonly code: ErrorCode;
  readonly retryable: boolean;
}

export const problemContentType = "application/problem+json";

/** The problem document of an error, as JSON text; `extension` are more members of it (RFC 9457 §3.2). */
export function problemJson(
  code: ErrorCode,
  detail: string,
  extension: Readonly<Record<string, unknown>> = {},
): string {
  const { status, title, retryable } = catalogue[code];
  const problem: Problem = {
    type: `urn:forebay:error:${code}`,
    title,
    status,
    detail,
    code,
    retryable,
  };
  return JSON.stringify({ ...problem, ...extension });
}

/** The header fields that go with an error's problem document (names in lower case). */
export function problemHeaders(error: ForebayError): Record<string, string> {
  const headers: Record<string, string> = {
    ...error.headers,
    "content-type": problemContentType,
    "cache-control": "no-store",
  };
  if (error.retryAfterSeconds !== undefined) {
    headers["retry-after"] = String(Math.max(1, Math.ceil(error.retryAfterSeconds)));
  }
  return headers;
}
