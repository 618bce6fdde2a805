import { isIP } from "node:net";
import { ForebayError } from "../../shared/errors/mod.ts";
import { limits } from "../../shared/limits.ts";
import type { AddressPolicy } from "./addresses.ts";

/**
 * What can be said of a webhook's URL before it is called: https, or http to this machine and to hosts the
 * configuration vouches for; no credentials, no fragment; no address that may not be called. Names are resolved when
 * they are called, each time (`webhook.ts`).
 *
 * @throws ForebayError `webhook_rejected`
 */
export function checkWebhookUrl(text: string, policy: AddressPolicy): void {
  if (text.length > limits.webhookUrlBytesMax) {
    throw rejected(`it has ${text.length} characters, at most ${limits.webhookUrlBytesMax}`);
  }
  const url = URL.parse(text);
  if (url === null || (url.protocol !== "https:" && url.protocol !== "http:")) {
    throw rejected("it is no http or https URL");
  }
  if (url.username !== "" || url.password !== "") {
    throw rejected("it holds credentials");
  }
  if (url.hash !== "") {
    throw rejected("it has a fragment, which is never sent");
  }
  const host = hostOf(url);
  const near = policy.isOwnMachine(host) || policy.vouchesFor(host);
  if (url.protocol === "http:" && !near) {
    throw rejected("plain http goes to this machine or to webhook-private-hosts only; use https");
  }
  const named = host === "localhost" || host.endsWith(".localhost");
  if ((named && !near) || (isIP(host) !== 0 && !policy.allows(host, host))) {
    throw rejected(`${host} is not an address of the public internet`);
  }
}

/** The host as an address or a name, without the brackets of IPv6. */
export function hostOf(url: URL): string {
  return url.hostname.replace(/^\[|\]$/g, "").replace(/\.$/, "");
}

/** The URL itself may be a secret and is not shown. */
function rejected(why: string): ForebayError {
  return new ForebayError("webhook_rejected", `the webhook's URL is refused: ${why}`);
}
