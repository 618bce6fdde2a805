import { keyMatches, requestKey } from "../../shared/auth/mod.ts";
import { ForebayError } from "../../shared/errors/mod.ts";
import type { Head, Target } from "../front/mod.ts";

/**
 * The one secret: a bearer token, or `?key=` from a beacon, which can set no header.
 *
 * @throws ForebayError `unauthorized`
 */
export function checkKey(key: string | null, head: Head, target: Target): void {
  if (key === null) {
    return;
  }
  const given = requestKey(head.get("authorization"), target.one("key"));
  if (!keyMatches(given, key)) {
    const found = given === null ? "no key came with the request" : "the key is not the one";
    const message = `${found}; send Authorization: Bearer <key>`;
    throw new ForebayError("unauthorized", message, {
      headers: { "www-authenticate": 'Bearer realm="forebay"' },
    });
  }
}
