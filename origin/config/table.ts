import { limits } from "../../shared/limits.ts";
import {
  duration,
  durationText,
  list,
  oneOf,
  optionalMatching,
  size,
  sizeText,
  matching,
  wholeNumber,
  yesOrNo,
  type Kind,
} from "./kinds.ts";
import type { SettingName, Settings } from "./types.ts";

export interface Setting<T> extends Kind<T> {
  /** `FOREBAY_…`. */
  readonly variable: string;
  /** `--…`, without its value. */
  readonly flag: string;
  readonly fallback: T;
  readonly help: string;
  /** Never printed: `config print` says `set`, errors leave the value out. */
  readonly secret: boolean;
  /** The commands that use it: `start`, or those that talk to a running server. */
  readonly usedBy: "start" | "client" | "both";
  /** How the value is shown to humans. */
  show(value: T): string;
}

interface Entry<T> {
  readonly kind: Kind<T>;
  readonly variable: string;
  readonly flag: string;
  readonly fallback: T;
  readonly help: string;
  readonly usedBy?: "client" | "both";
  readonly secret?: true;
  readonly show?: (value: T) => string;
}

function setting<T>(entry: Entry<T>): Setting<T> {
  const { kind, usedBy = "start", secret = false, show = String, ...rest } = entry;
  return { ...kind, ...rest, usedBy, secret, show };
}

const KiB = 1024;
const MiB = 1024 * KiB;
const GiB = 1024 * MiB;
const TiB = 1024 * GiB;

const address = matching(/^[0-9A-Za-z.:_-]+$/, "an address or host name such as 127.0.0.1");
const port = wholeNumber(0, 65_535);
const anyText = matching(/^[^\0]+$/, "a path");

/**
 * The one table of settings. Flags, environment variables, TOML keys, `--help` and `config print` are derived
 * from it; a new setting is one entry here and one field of `Settings`.
 */
export const table: { readonly [K in SettingName]: Setting<Settings[K]> } = {
  host: setting({
    kind: address,
    variable: "FOREBAY_HOST",
    flag: "--host",
    fallback: "127.0.0.1",
    help: "address the origin binds; a public one needs a key",
  }),
  port: setting({
    kind: port,
    variable: "FOREBAY_PORT",
    flag: "--port",
    fallback: 4437,
    help: "port of the origin; 0 takes a free one",
  }),
  data: setting({
    kind: anyText,
    variable: "FOREBAY_DATA",
    flag: "--data",
    fallback: "./data",
    help: "directory of everything that is stored",
  }),
  key: setting<string | null>({
    kind: optionalMatching(
      /^[!#-&(-_a-~]{1,512}$/,
      "1 to 512 visible ASCII characters without spaces or quotes",
    ),
    variable: "FOREBAY_KEY",
    flag: "--key",
    fallback: null,
    help: "the secret that guards writes and frames; prefer FOREBAY_KEY, flags show in process lists",
    usedBy: "both",
    secret: true,
    show: (value) => value ?? "none",
  }),
  allowedOrigins: setting<readonly string[]>({
    kind: list(
      /^[a-z][a-z0-9+.-]*:\/\/(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?$/,
      "exact web origins such as https://app.example",
    ),
    variable: "FOREBAY_ALLOWED_ORIGINS",
    flag: "--allowed-origins",
    fallback: [],
    help: "web origins whose pages may call; pages served from this machine always may",
    show: (value) => value.join(",") || "none",
  }),
  publicUrl: setting<string | null>({
    kind: optionalMatching(
      /^https?:\/\/[^\s/?#@]+$/,
      "an address without a path such as https://streams.example",
    ),
    variable: "FOREBAY_PUBLIC_URL",
    flag: "--public-url",
    fallback: null,
    help: "where webhook receivers reach this service; otherwise what subscribers called it by",
    show: (value) => value ?? "as called",
  }),
  webhookPrivateHosts: setting<readonly string[]>({
    kind: list(/^[0-9A-Za-z._:-]+$/, "host names or addresses such as hooks.internal"),
    variable: "FOREBAY_WEBHOOK_PRIVATE_HOSTS",
    flag: "--webhook-private-hosts",
    fallback: [],
    help: "hosts in private networks that webhooks may go to; loopback is allowed while only loopback is bound",
    show: (value) => value.join(",") || "none",
  }),
  longPollMs: setting({
    kind: duration(50, 300_000),
    variable: "FOREBAY_LONG_POLL_MS",
    flag: "--long-poll-ms",
    fallback: limits.longPollMs,
    help: "how long a long-poll waits at the tail",
    show: durationText,
  }),
  sseLifetimeMs: setting({
    kind: duration(100, 3_600_000),
    variable: "FOREBAY_SSE_LIFETIME_MS",
    flag: "--sse-lifetime-ms",
    fallback: limits.sseLifetimeMs,
    help: "an SSE response ends after this; clients come back by themselves",
    show: durationText,
  }),
  storage: setting({
    kind: oneOf(["auto", "uring", "threads", "node", "buffered", "memory"]),
    variable: "FOREBAY_STORAGE",
    flag: "--storage",
    fallback: "auto",
    help: "how writes are made durable: auto, uring, threads, node, buffered or memory; one that is not to be had ends the start",
  }),
  journalDamage: setting({
    kind: oneOf(["refuse", "quarantine"]),
    variable: "FOREBAY_JOURNAL_DAMAGE",
    flag: "--journal-damage",
    fallback: "refuse",
    help: "a damaged journal (WAL): refuse to start, or quarantine it, every byte kept, and begin a new one",
  }),
  journalBudgetBytes: setting({
    kind: size(2 * limits.entryBytesMax, 64 * TiB),
    variable: "FOREBAY_JOURNAL_BUDGET_BYTES",
    flag: "--journal-budget-bytes",
    fallback: limits.journalBudgetBytes,
    help: "bytes of journal (WAL) segments that may exist at once",
    show: sizeText,
  }),
  segmentBytes: setting({
    kind: size(2 * limits.entryBytesMax, 1 * GiB),
    variable: "FOREBAY_SEGMENT_BYTES",
    flag: "--segment-bytes",
    fallback: limits.segmentBytes,
    help: "size of one journal segment",
    show: sizeText,
  }),
  storeBytesMax: setting({
    kind: size(1 * MiB, 1024 * TiB),
    variable: "FOREBAY_STORE_BYTES_MAX",
    flag: "--store-bytes-max",
    fallback: limits.storeBytesMax,
    help: "bytes of records that may be kept; beyond it writes get 503 store_full",
    show: sizeText,
  }),
  arenaBytes: setting({
    kind: size(2 * limits.entryBytesMax, 16 * GiB),
    variable: "FOREBAY_ARENA_BYTES",
    flag: "--arena-bytes",
    fallback: limits.arenaBytes,
    help: "bytes of records held in memory between two checkpoints; there are two such parts",
    show: sizeText,
  }),
  checkpointAgeMs: setting({
    kind: duration(10, 3_600_000),
    variable: "FOREBAY_CHECKPOINT_AGE_MS",
    flag: "--checkpoint-age-ms",
    fallback: limits.checkpointAgeMs,
    help: "how old an entry may become before a checkpoint puts it into a run",
    show: durationText,
  }),
  maxConnections: setting({
    kind: wholeNumber(1, 1_000_000),
    variable: "FOREBAY_MAX_CONNECTIONS",
    flag: "--max-connections",
    fallback: 10_000,
    help: "open connections the origin takes",
  }),
  logLevel: setting({
    kind: oneOf(["debug", "info", "warn", "error", "silent"]),
    variable: "FOREBAY_LOG_LEVEL",
    flag: "--log-level",
    fallback: "info",
    help: "what is logged to stderr: debug, info, warn, error or silent",
  }),
  edge: setting({
    kind: yesOrNo,
    variable: "FOREBAY_EDGE",
    flag: "--edge",
    fallback: true,
    help: "whether the edge runs beside the origin",
  }),
  edgeHost: setting({
    kind: address,
    variable: "FOREBAY_EDGE_HOST",
    flag: "--edge-host",
    fallback: "127.0.0.1",
    help: "address the edge binds; a public one needs a key",
  }),
  edgePort: setting({
    kind: port,
    variable: "FOREBAY_EDGE_PORT",
    flag: "--edge-port",
    fallback: 8787,
    help: "port of the edge; 0 takes a free one",
  }),
  edgeRegion: setting({
    kind: matching(/^[a-z0-9-]{1,32}$/, "1 to 32 of a–z, 0–9 and -"),
    variable: "FOREBAY_EDGE_REGION",
    flag: "--edge-region",
    fallback: "local",
    help: "region in the names of the edge's outboxes",
  }),
  url: setting({
    kind: matching(
      /^https?:\/\/[^\s/]+(?:\/[^\s?#]*)?$/,
      "an address such as http://127.0.0.1:4437",
    ),
    variable: "FOREBAY_URL",
    flag: "--url",
    fallback: "http://127.0.0.1:4437",
    help: "the origin or edge to talk to",
    usedBy: "client",
  }),
};

/** All names, in the table's order. */
export const settingNames: readonly SettingName[] = Object.keys(table).filter(isSettingName);

export function isSettingName(name: string): name is SettingName {
  return Object.hasOwn(table, name);
}
