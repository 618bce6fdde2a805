import type { Clock, Random } from "../../shared/ports/mod.ts";
import type { FrontSettings, HeldBytes } from "../front/mod.ts";
import type { JournalStats } from "../journal/mod.ts";
import type { StoreStats } from "../store/mod.ts";
import type { Streams } from "../stream/mod.ts";
import type { Subscriptions } from "../subscription/mod.ts";
import type { Counters } from "./counters.ts";
import type { Fanout } from "./fanout.ts";
import type { WebHeaders } from "./webHeaders.ts";

/** What the gateway needs of a logger; pino's is one. */
export interface GatewayLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export interface GatewaySettings extends FrontSettings {
  readonly key: string | null;
  readonly allowedOrigins: readonly string[];
  /** What the URLs in subscriptions begin with; null for what each request was addressed to. */
  readonly publicUrl: string | null;
  readonly bodyBytesMax: number;
  /** Bodies being received, all together. */
  readonly heldBytesMax: number;
  readonly readBytesMax: number;
  readonly longPollMs: number;
  readonly sseLifetimeMs: number;
  readonly sseBacklogBytesMax: number;
  /** Requests that wait for something: a commit, new records, the rest of a body. */
  readonly waitersMax: number;
}

/** What holds the bytes, as /readyz and /metrics tell it. */
export interface StorageStatus {
  /** How the journal makes batches durable. */
  readonly storage: string;
  /** Why it is this one. */
  readonly storageReason: string;
  readonly journalId: string;
  readonly reserved: number;
  readonly durable: number;
  readonly journal: JournalStats;
  readonly store: StoreStats;
}

/** Something that stays open until told otherwise: a long-poll, an SSE response. */
export interface Lingering {
  /** The server closes: answer now. */
  shutDown(): void;
}

/** All that handlers share. */
export interface Context {
  readonly streams: Streams;
  readonly subscriptions: Subscriptions;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: GatewayLog;
  readonly settings: GatewaySettings;
  readonly counters: Counters;
  readonly held: HeldBytes;
  readonly web: WebHeaders;
  readonly fanout: Fanout;
  readonly lingering: Set<Lingering>;
  /** What a durable write's answer says: `memory` when the journal's storage forgets with the machine. */
  readonly durableAck: "origin" | "memory";
  readonly status: () => StorageStatus;
  /** Waiting now; bounded by `settings.waitersMax`. */
  waiting: number;
  closing: boolean;
}
