import pino, { type Logger } from "pino";
import { ForebayError } from "../shared/errors/mod.ts";
import { lsn } from "../shared/ids/mod.ts";
import { isLoopback, type OriginConfig } from "./config/mod.ts";
import { createGateway, defaultSettings, type Gateway } from "./gateway/mod.ts";
import { MemoryJournal, openJournal, type Journal, type StorageChoice } from "./journal/mod.ts";
import { clock, random } from "./ports/mod.ts";
import { MemoryDisk, realDisk } from "./storage/mod.ts";
import { openStore, type Store } from "./store/mod.ts";
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
  const parts = await openParts(config, logger);
  const { journal } = parts;
  try {
    parts.subscribed.subscriptions.start();
    const gateway = gatewayOf(config, parts);
    const port = await gateway.listen(config.host, config.port);
    const { storage, storageReason } = journal;
    logger.info({ port, storage, storageReason, dataDir: config.dataDir }, "origin listens");
    return {
      url: `http://${config.host.includes(":") ? `[${config.host}]` : config.host}:${port}`,
      port,
      close: async () => {
        await gateway.close(closeDeadlineMs);
        await closeParts(parts);
      },
    };
  } catch (error) {
    await closeParts(parts);
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

/** The store first: the journal's entries are replayed on top of what it holds. */
async function openParts(config: OriginConfig, logger: Logger): Promise<Parts> {
  const store = await openStore({
    ...{ dir: config.dataDir, clock, random },
    disk: config.storage === "memory" ? new MemoryDisk({ volatile: true }) : realDisk,
    bytesMax: config.storeBytesMax,
    arenaBytesMax: config.arenaBytes,
    checkpointAgeMs: config.checkpointAgeMs,
    onFailed: (error) => {
      if (error === null) {
        logger.info("checkpoints are made again");
      } else {
        logger.error(
          { err: error },
          "a checkpoint failed: it is tried again, writes go on meanwhile",
        );
      }
    },
  });
  const streams = createStreams({ clock, store: store.records });
  const subscribed = subscriptionsOf(config, streams, logger);
  let journal: Journal | undefined;
  try {
    const { storage } = config;
    const opening = { streams, store, logger };
    const opened =
      storage === "memory"
        ? inMemory(config, opening)
        : await openStreams(config, storage, opening);
    journal = opened.journal;
    await store.start({ journal, freeze: () => streams.freeze() }, opened.replaced);
    streams.start(journal);
    return { streams, subscribed, store, journal, logger };
  } catch (error) {
    await subscribed.close();
    await store.close();
    await journal?.close();
    throw error;
  }
}

type Opening = Pick<Parts, "streams" | "store" | "logger">;

/** The journal, and whether it is a new one in the place of one that was damaged and set aside. */
interface OpenedJournal {
  readonly journal: Journal;
  readonly replaced: boolean;
}

async function openStreams(
  config: OriginConfig,
  storage: StorageChoice,
  { streams, store, logger }: Opening,
): Promise<OpenedJournal> {
  let replaced = false;
  let restored = false;
  // What is damaged is set aside before anything is replayed. Nothing of the new journal is held by the runs.
  const restore = (): void => {
    if (!restored) {
      restored = true;
      streams.restore(store.state(), replaced ? lsn(0) : store.checkpointLsn);
    }
  };
  const journal = await openJournal(
    {
      ...{ dir: config.dataDir, disk: realDisk, clock, random, storage },
      onDamage: config.journalDamage,
      onQuarantined: (message) => {
        replaced = true;
        logger.error(message);
      },
      onRecovered: (findings) => logger.info({ findings }, "journal recovered"),
      segmentBytes: config.segmentBytes,
      budgetBytes: config.journalBudgetBytes,
      events: {
        onDurable: (durable) => {
          streams.onDurable(durable);
          store.onDurable();
        },
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
    (at, bytes) => {
      restore();
      if (store.replays(at)) {
        streams.replay(at, bytes);
      }
    },
  );
  restore();
  return { journal, replaced };
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
function inMemory(config: OriginConfig, { streams, store }: Opening): OpenedJournal {
  const journal: Journal = new MemoryJournal({
    random,
    segmentBytes: config.segmentBytes,
    budgetBytes: config.journalBudgetBytes,
    events: {
      onDurable: (durable) => {
        journal.trim(durable);
        streams.onDurable(durable);
        store.onDurable();
      },
      onFailed: (error) => streams.onFailed(error),
    },
  });
  return { journal, replaced: false };
}

interface Parts {
  readonly streams: OwnedStreams;
  readonly subscribed: Subscribed;
  readonly store: Store;
  readonly journal: Journal;
  readonly logger: Logger;
}

function gatewayOf(config: OriginConfig, parts: Parts): Gateway {
  const { streams, store, journal, logger } = parts;
  const { subscriptions } = parts.subscribed;
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
      store: store.stats(),
    }),
  });
}

/** A journal that failed cannot be flushed; the process ends all the same, and its waiters were told. */
async function closeParts({ streams, subscribed, store, journal, logger }: Parts): Promise<void> {
  await subscribed.close();
  streams.close();
  await store.close();
  try {
    await journal.close();
  } catch (error) {
    logger.error({ err: error }, "the journal closed with an error");
  }
}
