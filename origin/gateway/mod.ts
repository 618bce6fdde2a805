/**
 * The gateway: HTTP in front of the streams. Appends and frames are answered in the node:http handler, reads at the
 * tail live on raw responses, everything else goes through Hono.
 */
import type { Clock, Random } from "../../shared/ports/mod.ts";
import { limits } from "../../shared/limits.ts";
import { parseAllowedOrigins } from "../../shared/protocol/mod.ts";
import { Front, HeldBytes } from "../front/mod.ts";
import type { Streams } from "../stream/mod.ts";
import type { Subscriptions } from "../subscription/mod.ts";
import { createApp } from "./app.ts";
import type { Context, GatewayLog, GatewaySettings, StorageStatus } from "./context.ts";
import { Counters } from "./counters.ts";
import { Dispatch } from "./dispatch.ts";
import { Fanout } from "./fanout.ts";
import { metricsRegistry } from "./metrics.ts";
import { WebHeaders } from "./webHeaders.ts";

export type { GatewayLog, GatewaySettings, StorageStatus } from "./context.ts";

export interface GatewayOptions {
  readonly streams: Streams;
  readonly subscriptions: Subscriptions;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: GatewayLog;
  readonly settings: GatewaySettings;
  /** See `Context.durableAck`. */
  readonly durableAck: "origin" | "memory";
  readonly status: () => StorageStatus;
}

export interface Gateway {
  /**
   * @returns the port bound
   * @throws ForebayError `port_taken` | `config_invalid`
   */
  listen(host: string, port: number): Promise<number>;
  /** Refuses what is new, finishes what runs; connections open after `deadlineMs` are cut. */
  close(deadlineMs: number): Promise<void>;
}

/** Settings that configuration does not name. */
export const defaultSettings: GatewaySettings = {
  key: null,
  allowedOrigins: [],
  publicUrl: null,
  maxConnections: 10_000,
  bodyBytesMax: limits.bodyBytesMax,
  heldBytesMax: 512 * 1024 * 1024,
  readBytesMax: limits.readBytesMax,
  longPollMs: limits.longPollMs,
  sseLifetimeMs: limits.sseLifetimeMs,
  sseBacklogBytesMax: limits.sseBacklogBytesMax,
  waitersMax: limits.waitersMax,
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 60_000,
  keepAliveTimeoutMs: 65_000,
  timeoutCheckMs: 10_000,
};

/** @throws ForebayError `config_invalid` for web origins that are none */
export function createGateway(options: GatewayOptions): Gateway {
  const { settings } = options;
  // Pages served from this machine may always call.
  const allowed = parseAllowedOrigins([...settings.allowedOrigins, "loopback"]);
  const context: Context = {
    ...options,
    counters: new Counters(),
    held: new HeldBytes(settings.heldBytesMax),
    web: new WebHeaders(allowed),
    fanout: new Fanout(options.streams),
    lingering: new Set(),
    waiting: 0,
    closing: false,
  };
  const app = createApp(metricsRegistry(context));
  const dispatch = new Dispatch(context, app);
  const front = new Front({
    clock: context.clock,
    settings,
    onRecognised: (channel) => dispatch.onHot(channel),
    onRequest: (channel) => dispatch.onRequest(channel),
    onCut: () => context.log.warn({ waiting: context.waiting }, "connections cut at the deadline"),
  });
  return {
    listen: (host, port) => front.listen(host, port),
    close: (deadlineMs) => close(front, context, deadlineMs),
  };
}

function close(front: Front, context: Context, deadlineMs: number): Promise<void> {
  context.closing = true;
  const closed = front.close(deadlineMs);
  for (const each of [...context.lingering]) {
    each.shutDown();
  }
  front.closeIdle();
  return closed;
}
