import type { ErrorCode } from "../errors/mod.ts";

/** The protocol's own names of what its subscription requests are refused for. */
const named: Partial<Record<ErrorCode, string>> = {
  bad_subscription: "INVALID_REQUEST",
  bad_json: "INVALID_REQUEST",
  bad_utf8: "INVALID_REQUEST",
  bad_path: "INVALID_REQUEST",
  webhook_rejected: "WEBHOOK_URL_REJECTED",
  bad_token: "TOKEN_INVALID",
  subscription_exists: "SUBSCRIPTION_ALREADY_EXISTS",
  bad_ack_offset: "INVALID_OFFSET",
};

/**
 * What a problem document of a subscription request has besides its own members: the `error` object of the protocol,
 * whose code is named above or is ours in capitals.
 */
export function controlError(
  code: ErrorCode,
  message: string,
  members: Readonly<Record<string, unknown>> = {},
): Readonly<Record<string, unknown>> {
  return { error: { code: named[code] ?? code.toUpperCase(), message, ...members } };
}
