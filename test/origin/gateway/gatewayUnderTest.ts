import {
  createGateway,
  defaultSettings,
  type GatewaySettings,
} from "../../../origin/gateway/mod.ts";
import { clock, random } from "../../../origin/ports/mod.ts";
import { idleStats, ResidentRecords } from "../store/harness.ts";
import { createStreams, type OwnedStreams } from "../../../origin/stream/mod.ts";
import {
  AddressPolicy,
  createSubscriptions,
  createWebhookClient,
} from "../../../origin/subscription/mod.ts";
import { lsn } from "../../../shared/ids/mod.ts";
import { SteppedJournal } from "./steppedJournal.ts";

export interface GatewayUnderTest {
  readonly url: string;
  readonly port: number;
  readonly streams: OwnedStreams;
  readonly journal: SteppedJournal;
  close(deadlineMs?: number): Promise<void>;
}

/** The real gateway on real streams, listening on a free port; only the journal is a test's. */
export async function startGateway(
  settings: Partial<GatewaySettings> = {},
  storeBytesMax = 256 * 1024 * 1024,
): Promise<GatewayUnderTest> {
  const streams = createStreams({ clock, store: new ResidentRecords(storeBytesMax) });
  const journal = new SteppedJournal({
    onDurable: (durable) => streams.onDurable(durable),
    onFailed: (error) => streams.onFailed(error),
  });
  const policy = new AddressPolicy(true, []);
  const webhooks = createWebhookClient(policy);
  const log = { info() {}, warn() {}, error() {} };
  const { post } = webhooks;
  const subscriptions = createSubscriptions({ streams, clock, random, log, post, policy });
  streams.onDurable(lsn(0));
  streams.start(journal);
  subscriptions.start();
  const gateway = createGateway({
    streams,
    subscriptions,
    clock,
    random,
    log,
    settings: { ...defaultSettings, longPollMs: 500, ...settings },
    durableAck: "origin",
    status: () => ({
      storage: journal.storage,
      storageReason: journal.storageReason,
      journalId: journal.id,
      reserved: journal.reserved,
      durable: journal.durable,
      journal: journal.stats(),
      store: idleStats,
    }),
  });
  const port = await gateway.listen("127.0.0.1", 0);
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    streams,
    journal,
    async close(deadlineMs = 2000): Promise<void> {
      await gateway.close(deadlineMs);
      subscriptions.close();
      await webhooks.close();
      streams.close();
    },
  };
}
