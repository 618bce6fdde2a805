/** What one origin process is started with. Every value is already checked (`loadConfig`). */
export interface OriginConfig {
  /** Address bound. Anything but a loopback address needs `key`. */
  readonly host: string;
  /** 0 lets the system choose a free one. */
  readonly port: number;
  /** Absolute path; everything the origin stores lies below it. */
  readonly dataDir: string;
  /** The one secret that guards writes and frames; null binds loopback only. */
  readonly key: string | null;
  /** Web origins (`https://app.example`) that browsers may come from; `*` allows any, without credentials. */
  readonly allowedOrigins: readonly string[];
  /** How long a long-poll waits at the tail before 204. */
  readonly longPollMs: number;
  /** An SSE response ends after this; the client comes back with its offset. */
  readonly sseLifetimeMs: number;
  /** Bytes of segment files one process may hold. */
  readonly journalBudgetBytes: number;
  readonly segmentBytes: number;
  /** Bytes of records the store may hold; beyond it 503 `store_full`. */
  readonly storeBytesMax: number;
  readonly maxConnections: number;
  readonly logLevel: LogLevel;
}

export type LogLevel = "debug" | "info" | "warn" | "error" | "silent";
