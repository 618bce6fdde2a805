/** What one origin process is started with. Every value is already checked (`resolveSettings`). */
export interface OriginConfig {
  /** Address bound. Anything but a loopback address needs `key`. */
  readonly host: string;
  /** 0 lets the system choose a free one. */
  readonly port: number;
  /** Absolute path; everything the origin stores lies below it. */
  readonly dataDir: string;
  /** The one secret that guards writes and frames; null binds loopback only. */
  readonly key: string | null;
  /** Exact web origins (`https://app.example`) whose pages may call, beside those served from this machine. */
  readonly allowedOrigins: readonly string[];
  /** Where webhook receivers reach this service; null for what each subscription's own request was addressed to. */
  readonly publicUrl: string | null;
  /** Hosts that webhooks may go to wherever they are; see `AddressPolicy`. */
  readonly webhookPrivateHosts: readonly string[];
  /** How long a long-poll waits at the tail before 204. */
  readonly longPollMs: number;
  /** An SSE response ends after this; the client comes back with its offset. */
  readonly sseLifetimeMs: number;
  /** How the journal makes batches durable; `auto` takes the best that works. `memory` forgets when the process ends. */
  readonly storage: StorageSetting;
  /** What becomes of a damaged journal: the start fails, or it is set aside and a new one begun. */
  readonly journalDamage: "refuse" | "quarantine";
  /** Bytes of segment files one process may hold. */
  readonly journalBudgetBytes: number;
  readonly segmentBytes: number;
  /** Bytes the store may hold on disk and in memory; beyond it 503 `store_full`. */
  readonly storeBytesMax: number;
  /** Bytes of records in memory between two checkpoints; two such parts are held. */
  readonly arenaBytes: number;
  /** A checkpoint is due when the first entry since the last one is so old, ms. */
  readonly checkpointAgeMs: number;
  readonly maxConnections: number;
  readonly logLevel: LogLevel;
}

export type StorageSetting = "auto" | "uring" | "threads" | "node" | "buffered" | "memory";

export type LogLevel = "debug" | "info" | "warn" | "error" | "silent";

/** Every setting by its name in `forebay.toml`: the origin's, the edge's, the command line's. */
export interface Settings extends Omit<OriginConfig, "dataDir"> {
  /** As given; relative to the working directory (or to the file that says so). */
  readonly data: string;
  readonly edge: boolean;
  readonly edgeHost: string;
  readonly edgePort: number;
  readonly edgeRegion: string;
  readonly url: string;
}

export type SettingName = keyof Settings;

/** Where a value came from. */
export type Source =
  | { readonly kind: "flag"; readonly flag: string }
  | { readonly kind: "env"; readonly variable: string }
  | { readonly kind: "file"; readonly path: string }
  | { readonly kind: "default" };

export interface Resolved {
  readonly values: Settings;
  readonly sources: Readonly<Record<SettingName, Source>>;
  /** The TOML file that was read, if any. */
  readonly file: string | null;
}
