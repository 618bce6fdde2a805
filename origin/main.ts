import pino, { type Logger } from "pino";
import { ForebayError } from "../shared/errors/mod.ts";
import { isLoopback, type OriginConfig } from "./config/mod.ts";
import { createGateway, defaultSettings, type Gateway } from "./gateway/mod.ts";
import { MemoryJournal, openJournal, type Journal } from "./journal/mod.ts";
import { clock, random } from "./ports/mod.ts";
import { realDisk } from "./storage/mod.ts";
import { ResidentStore } from "./store/mod.ts";
import { createStreams, type OwnedStreams } from "./stream/mod.ts";
import {
  AddressPolicy,
  createSubscriptions,
  createWebhookClient,
  type OwnedSubscriptions,
} from "./subscription/mod.ts";

export interface RunningOrigin {
  readonly url: string;
  readonly port: number;
  /**
   * Stops accepting, answers what waits, flushes the journal and releases the data directory. What is still open
   * after ten seconds is cut.
   */
  close(): Promise<void>;
}

const closeDeadlineMs = 10_000;

/**
 * Starts one origin: recovers what `config.dataDir` holds, then listens.
 *
 * @throws ForebayError `key_required`, `config_invalid`, `port_taken`, and whatever `openJournal` throws; the data
 *   directory is free again then
 */
export async function startOrigin(
  config: OriginConfig,
  logger: Logger = standardLogger(config),
): Promise<RunningOrigin> {
  checkAddress(config);
  const streams = createStreams({ clock, store: new ResidentStore(config.storeBytesMax) });
  const subscribed = subscriptionsOf(config, streams, logger);
  const { subscriptions } = subscribed;
  const journal = await openStreams(config, streams, logger);
  try {
    subscriptions.start();
    const gateway = gatewayOf(config, { streams, subscriptions, journal, logger });
    const port = await gateway.listen(config.host, config.port);
    const { storage, storageReason } = journal;
    logger.info({ port, storage, storageReason, dataDir: config.dataDir }, "origin listens");
    return {
      url: `http://${config.host.includes(":") ? `[${config.host}]` : config.host}:${port}`,
      port,
      close: async () => {
        await gateway.close(closeDeadlineMs);
        await subscribed.close();
        await closeJournal(streams, journal, logger);
      },
    };
  } catch (error) {
    await subscribed.close();
    await closeJournal(streams, journal, logger);
    throw error;
  }
}

/** To stderr, one JSON line each. Keys are never logged; should one come into a field, it is blanked. */
function standardLogger(config: OriginConfig): Logger {
  const redact = ["key", "authorization", "*.key", "*.authorization", "headers.authorization"];
  return pino({ level: config.logLevel, redact }, pino.destination({ fd: 2, sync: true }));
}

/** Whoever reaches an address may write there, so only this machine's own may go without a key. */
function checkAddress({ host, key }: OriginConfig): void {
  if (key === null && !isLoopback(host)) {
    const message = `${host} can be reached from outside: set FOREBAY_KEY, or bind 127.0.0.1`;
    throw new ForebayError("key_required", message);
  }
}

async function openStreams(
  config: OriginConfig,
  streams: OwnedStreams,
  logger: Logger,
): Promise<Journal> {
  const { storage } = config;
  if (storage === "memory") {
    return inMemory(config, streams);
  }
  const journal = await openJournal(
    {
      disk: realDisk,
      storage,
      dir: config.dataDir,
      clock,
      random,
      onDamage: config.journalDamage,
      onQuarantined: (message) => logger.error(message),
      onRecovered: (findings) => logger.info({ findings }, "journal recovered"),
      segmentBytes: config.segmentBytes,
      budgetBytes: config.journalBudgetBytes,
      events: {
        onDurable: (durable) => streams.onDurable(durable),
        onFull: (reason) => {
          if (reason === null) {
            logger.info("the journal has space again");
          } else {
            logger.warn({ reason }, "the journal has no space: writes that need it get 507");
          }
        },
        onFailed: (error) => {
          logger.error({ err: error }, "the journal failed: writes are refused, reads go on");
          streams.onFailed(error);
        },
      },
    },
    (lsn, bytes) => streams.replay(lsn, bytes),
  );
  streams.start(journal);
  return journal;
}

interface Subscribed {
  readonly subscriptions: OwnedSubscriptions;
  close(): Promise<void>;
}

/** The subscriptions with what sends their webhooks: to this machine too while nobody else can ask for that. */
function subscriptionsOf(
  { host, webhookPrivateHosts }: OriginConfig,
  streams: OwnedStreams,
  log: Logger,
): Subscribed {
  const policy = new AddressPolicy(isLoopback(host), webhookPrivateHosts);
  const { post, close } = createWebhookClient(policy);
  const subscriptions = createSubscriptions({ streams, clock, random, log, post, policy });
  return {
    subscriptions,
    close: async () => {
      subscriptions.close();
      await close();
    },
  };
}

/** Nothing is ever replayed, so what is committed is needed no more. */
function inMemory(config: OriginConfig, streams: OwnedStreams): Journal {
  const journal: Journal = new MemoryJournal({
    random,
    segmentBytes: config.segmentBytes,
    budgetBytes: config.journalBudgetBytes,
    events: {
      onDurable: (durable) => {
        journal.trim(durable);
        streams.onDurable(durable);
      },
      onFailed: (error) => streams.onFailed(error),
    },
  });
  streams.start(journal);
  return journal;
}

interface Parts {
  readonly streams: OwnedStreams;
  readonly subscriptions: OwnedSubscriptions;
  readonly journal: Journal;
  readonly logger: Logger;
}

function gatewayOf(config: OriginConfig, parts: Parts): Gateway {
  const { streams, subscriptions, journal, logger } = parts;
  const { key, allowedOrigins, publicUrl, longPollMs, sseLifetimeMs, maxConnections } = config;
  return createGateway({
    streams,
    subscriptions,
    clock,
    random,
    log: logger,
    settings: {
      ...defaultSettings,
      ...{ key, allowedOrigins, publicUrl, longPollMs, sseLifetimeMs, maxConnections },
    },
    durableAck: journal.storage === "memory" ? "memory" : "origin",
    status: () => ({
      storage: journal.storage,
      storageReason: journal.storageReason,
      journalId: journal.id,
      reserved: journal.reserved,
      durable: journal.durable,
      journal: journal.stats(),
    }),
  });
}

/** A journal that failed cannot be flushed; the process ends all the same, and its waiters were told. */
async function closeJournal(
  streams: OwnedStreams,
  journal: Journal,
  logger: Logger,
): Promise<void> {
  streams.close();
  try {
    await journal.close();
  } catch (error) {
    logger.error({ err: error }, "the journal closed with an error");
  }
}
