import { ForebayError } from "../../shared/errors/mod.ts";
import {
  parseAllowedOrigins,
  loopbackOrigins,
  type AllowedOrigins,
} from "../../shared/protocol/mod.ts";
import { partitionOf } from "../../shared/ids/mod.ts";
import type { OutboxPlace } from "../batcher/mod.ts";
import type { Outbox, OutboxRpc } from "../outbox/mod.ts";
import type { OriginLink } from "../uplink/mod.ts";

/** The Worker's bindings (wrangler.toml). */
export interface Env {
  readonly OUTBOX: DurableObjectNamespace<Outbox>;
  readonly ORIGIN_URL: string;
  /** The secret that guards writes and frames; may be missing beside an origin on this machine only. */
  readonly FOREBAY_KEY?: string;
  readonly REGION: string;
  /** A power of two. */
  readonly OUTBOX_PARTITIONS: string;
  /** Web origins that may write from a page, separated by commas, `loopback` for this machine's. Without it: `loopback`. */
  readonly FOREBAY_ORIGINS?: string;
}

/** The bindings, checked. */
export interface Settings {
  readonly link: OriginLink;
  readonly key: string | null;
  readonly region: string;
  readonly partitions: number;
  readonly webOrigins: AllowedOrigins;
}

const known = new WeakMap<Env, Settings>();

/**
 * The settings of an `env` object, checked once.
 *
 * @throws ForebayError `config_invalid`, `key_required`
 */
export function settingsOf(env: Env): Settings {
  let settings = known.get(env);
  if (settings === undefined) {
    settings = check(env);
    known.set(env, settings);
  }
  return settings;
}

function check(env: Env): Settings {
  const url = originUrl(env.ORIGIN_URL);
  const key = env.FOREBAY_KEY === undefined || env.FOREBAY_KEY === "" ? null : env.FOREBAY_KEY;
  if (key === null && !isLoopback(url.hostname)) {
    throw new ForebayError(
      "key_required",
      `this edge has no FOREBAY_KEY, so it serves only an origin on its own machine, not ${url.host}; set the secret`,
    );
  }
  const partitions = Number(env.OUTBOX_PARTITIONS);
  if (
    !Number.isInteger(partitions) ||
    partitions < 1 ||
    partitions > 4096 ||
    (partitions & (partitions - 1)) !== 0
  ) {
    throw invalid("OUTBOX_PARTITIONS", env.OUTBOX_PARTITIONS, "a power of two from 1 to 4096");
  }
  if (!/^[A-Za-z0-9_-]{1,32}$/.test(env.REGION ?? "")) {
    throw invalid("REGION", env.REGION, "1 to 32 letters, digits, - or _");
  }
  const link = { url: url.href.replace(/\/$/, ""), key };
  return {
    link,
    key,
    region: env.REGION,
    partitions,
    webOrigins: webOriginsOf(env.FOREBAY_ORIGINS),
  };
}

function webOriginsOf(text: string | undefined): AllowedOrigins {
  const entries = (text ?? "").split(",").map((entry) => entry.trim());
  const named = entries.filter((entry) => entry !== "");
  return named.length === 0 ? loopbackOrigins : parseAllowedOrigins(named);
}

function originUrl(text: string | undefined): URL {
  const url = URL.parse(text ?? "");
  const plain =
    url !== null &&
    (url.protocol === "http:" || url.protocol === "https:") &&
    url.search === "" &&
    url.hash === "";
  if (!plain) {
    throw invalid("ORIGIN_URL", text, "an http or https URL without a query");
  }
  return url;
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "[::1]" || /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(host);
}

function invalid(name: string, value: string | undefined, wanted: string): ForebayError {
  return new ForebayError(
    "config_invalid",
    `${name} is ${JSON.stringify(value ?? null)}, it must be ${wanted}`,
  );
}

/** A stub of the outbox with this number, made for the calling request. */
export function outboxStub(env: Env, region: string, partition: number): OutboxRpc {
  return env.OUTBOX.get(env.OUTBOX.idFromName(`buf:${region}:${partition}`));
}

/** The outbox that takes a stream's records. */
export function outboxOf(env: Env, settings: Settings, stream: string): OutboxPlace {
  const partition = partitionOf(stream, settings.partitions);
  return {
    buffer: `${settings.region}:${partition}`,
    open: () => outboxStub(env, settings.region, partition),
  };
}
