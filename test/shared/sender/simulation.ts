import assert from "node:assert/strict";
import type { LinkMessage } from "../../../shared/frame/mod.ts";
import {
  emptyMemory,
  type FlightFrame,
  readAnswer,
  startSender,
  stepSender,
  type SenderAnswer,
  type SenderEffect,
  type SenderMemory,
  type SenderReport,
  type SenderState,
  type SenderStep,
} from "../../../shared/sender/mod.ts";

/** One frame as its outbox keeps it: `payload` is the number of the append, never reused. */
export interface Row {
  readonly fsn: number;
  readonly boot: number;
  readonly payload: number;
  readonly dead: boolean;
}

/** What becomes of a POST on its way. `frames` of it reach the origin before a cut or a NACK. */
export type Fate =
  | { readonly kind: "answered" }
  | { readonly kind: "lost_before" }
  | { readonly kind: "lost_after"; readonly frames: number }
  | { readonly kind: "refused" }
  | { readonly kind: "busy"; readonly frames: number };

interface EpochState {
  fsn: number;
  helloBoot: number;
  frameBoot: number;
}

/** The receiving side, by the rules of FORMAT.md. */
export class SimulatedOrigin {
  journalId = "journal-1";
  /** Payloads in the order in which they became durable. */
  applied: number[] = [];
  readonly poisoned = new Set<number>();
  private epochs = new Map<string, EpochState>();
  private wipes = 0;

  durable(epoch: string): number {
    return this.epochs.get(epoch)?.fsn ?? 0;
  }

  /** Another disk: nothing of before is there. */
  wipe(): void {
    this.wipes++;
    this.journalId = `journal-${this.wipes + 1}`;
    this.applied = [];
    this.epochs = new Map();
  }

  receive(
    epoch: string,
    hello: number | null,
    rows: readonly Row[],
    busyAfter: number,
  ): LinkMessage[] {
    const state = this.epochs.get(epoch) ?? { fsn: 0, helloBoot: 0, frameBoot: 0 };
    this.epochs.set(epoch, state);
    const messages: LinkMessage[] = [];
    if (hello !== null) {
      state.helloBoot = Math.max(state.helloBoot, hello);
      messages.push({
        type: "welcome",
        welcome: {
          journalId: this.journalId,
          buffer: "b",
          durableFsn: state.fsn,
          latestBoot: state.frameBoot,
        },
      });
    }
    const refusal = this.apply(state, rows, busyAfter);
    if (refusal !== null) {
      messages.push({
        type: "nack",
        nack: { buffer: "b", epoch, expectedFsn: state.fsn + 1, message: "", ...refusal },
      });
    }
    messages.push({
      type: "ack",
      ack: { buffer: "b", epoch, received: state.fsn, durable: state.fsn, replicated: 0 },
    });
    return messages;
  }

  private apply(state: EpochState, rows: readonly Row[], busyAfter: number): Refusal | null {
    for (const [i, row] of rows.entries()) {
      const refusal = i >= busyAfter ? refused(row, "disk_full", true) : this.judge(state, row);
      if (refusal !== null) {
        return refusal;
      }
      if (row.fsn === state.fsn + 1) {
        state.fsn = row.fsn;
        state.frameBoot = Math.max(state.frameBoot, row.boot);
        if (!row.dead) {
          this.applied.push(row.payload);
        }
      }
    }
    return null;
  }

  private judge(state: EpochState, row: Row): Refusal | null {
    if (row.boot > state.helloBoot) {
      return refused(row, "hello_required", true);
    }
    if (row.fsn > state.fsn + 1) {
      return refused(row, "frame_gap", false);
    }
    if (row.fsn <= state.fsn) {
      return row.boot > state.frameBoot ? refused(row, "stale_outbox_epoch", false) : null;
    }
    return this.poisoned.has(row.payload) && !row.dead
      ? refused(row, "frame_spans_shards", false)
      : null;
  }
}

interface Refusal {
  readonly fsn: number;
  readonly code:
    | "disk_full"
    | "hello_required"
    | "frame_gap"
    | "stale_outbox_epoch"
    | "frame_spans_shards";
  readonly retryable: boolean;
}

const refused = (row: Row, code: Refusal["code"], retryable: boolean): Refusal => ({
  fsn: row.fsn,
  code,
  retryable,
});

/** What goes out at once. */
interface Chunk {
  readonly epoch: string;
  readonly hello: number | null;
  readonly rows: readonly Row[];
}

/** Chunks under way to the origin, answers under way from it. */
interface Link {
  readonly outbound: Chunk[];
  readonly inbound: LinkMessage[][];
  /** A NACK was said: nothing is looked at before the next HELLO. */
  deaf: boolean;
}

/** All that is on an outbox's disk. */
interface Storage {
  readonly epoch: string;
  readonly boot: number;
  readonly highest: number;
  readonly rows: readonly Row[];
  readonly memory: SenderMemory;
  readonly alarmAtMs: number | null;
}

const framesPerPost = 3;
const frameBytes = 10;

/** An outbox around the sender: it obeys the effects and asserts what must hold after each step. */
export class SimulatedOutbox {
  readonly origin: SimulatedOrigin;
  readonly reports: SenderReport[] = [];
  readonly posts: { readonly hello: boolean; readonly fsns: readonly number[] }[] = [];
  nowMs = 1_000_000;
  appended = 0;
  private storage: Storage = {
    epoch: "epoch-1",
    boot: 1,
    highest: 0,
    rows: [],
    memory: emptyMemory,
    alarmAtMs: null,
  };
  private snapshot: Storage;
  private appendedInSnapshot = 0;
  private epochs = 1;
  private bootTaken = true;
  private state: SenderState;
  private post: Chunk | null = null;
  private link: Link | null = null;
  private readonly sent: FlightFrame[][] = [];
  private readonly ghosts: Chunk[] = [];
  private readonly pushes: boolean;

  constructor(origin: SimulatedOrigin, pushes = true) {
    this.origin = origin;
    this.pushes = pushes;
    this.snapshot = this.storage;
    this.state = this.started(emptyMemory, 0, 1).state;
  }

  private started(memory: SenderMemory, highest: number, boot: number): SenderStep {
    return startSender(memory, { highest, boot, pushes: this.pushes, linked: false }, this.nowMs);
  }

  /** The origin dials: whatever link there was is no more. */
  linkUp(): void {
    this.link = { outbound: [], inbound: [], deaf: false };
    this.take(stepSender(this.state, { type: "linkUp", nowMs: this.nowMs }));
  }

  linkDown(random: number): void {
    if (this.link !== null) {
      this.ghosts.push(...this.link.outbound);
      this.link = null;
      const event = { type: "linkDown", reason: "cut", nowMs: this.nowMs, random } as const;
      this.take(stepSender(this.state, event));
    }
  }

  /** Bytes of a link that is cut may reach the origin late. */
  haunt(): void {
    const chunk = this.ghosts.shift();
    if (chunk !== undefined) {
      this.origin.receive(chunk.epoch, chunk.hello, chunk.rows, Infinity);
    }
  }

  forgetGhosts(): void {
    this.ghosts.length = 0;
  }

  get linked(): boolean {
    return this.link !== null;
  }

  /** The origin takes the next chunk off the link. After a NACK it looks at nothing before the next HELLO. */
  linkDeliver(busy: boolean): boolean {
    const { link } = this;
    const chunk = link?.outbound.shift();
    if (link === null || chunk === undefined) {
      return false;
    }
    link.deaf &&= chunk.hello === null;
    if (!link.deaf) {
      const messages = this.origin.receive(
        chunk.epoch,
        chunk.hello,
        chunk.rows,
        busy ? 0 : Infinity,
      );
      // Marks before the NACK: what it says of itself waits for the same commits.
      const nack = messages.filter(({ type }) => type === "nack");
      link.deaf = nack.length > 0;
      link.inbound.push([...messages.filter(({ type }) => type !== "nack"), ...nack]);
    }
    return true;
  }

  /** The outbox reads the next message off the link. */
  linkHear(random: number): boolean {
    const messages = this.link?.inbound.shift();
    if (messages === undefined) {
      return false;
    }
    for (const message of messages) {
      this.nowMs += 1;
      const { answer, firstNewerFsn } = this.read([message]);
      this.take(
        stepSender(this.state, {
          type: "heard",
          answer,
          firstNewerFsn,
          nowMs: this.nowMs,
          random,
        }),
      );
    }
    return true;
  }

  get alarmAtMs(): number | null {
    return this.storage.alarmAtMs;
  }
  get phase(): string {
    return this.state.phase;
  }
  get memory(): SenderMemory {
    return this.storage.memory;
  }
  get epoch(): string {
    return this.storage.epoch;
  }
  get rows(): readonly Row[] {
    return this.storage.rows;
  }

  append(): void {
    const { highest, rows } = this.storage;
    const boot = this.bootTaken ? this.storage.boot : Math.max(this.nowMs, this.storage.boot + 1);
    this.bootTaken = true;
    const row = { fsn: highest + 1, boot, payload: ++this.appended, dead: false };
    this.storage = { ...this.storage, boot, highest: row.fsn, rows: [...rows, row] };
    this.take(
      stepSender(this.state, { type: "appended", highest: row.fsn, boot, nowMs: this.nowMs }),
    );
  }

  /** The process dies and comes back: what was in flight stays so for the origin, the alarm survives. */
  restart(): void {
    this.nowMs += 1;
    this.post = null;
    this.link = null;
    this.bootTaken = false;
    const { memory, highest, boot } = this.storage;
    this.take(this.started(memory, highest, boot));
  }

  keepCopy(): void {
    this.snapshot = this.storage;
    this.appendedInSnapshot = this.appended;
  }

  /** The process comes back on the copy. Returns the payloads that only the lost storage knew. */
  restoreCopy(): readonly number[] {
    this.storage = this.snapshot;
    const gone = Array.from(
      { length: this.appended - this.appendedInSnapshot },
      (_, i) => this.appendedInSnapshot + i + 1,
    );
    this.restart();
    return gone;
  }

  /** Time goes on to the alarm, if there is one. */
  passToAlarm(): void {
    if (this.alarmAtMs === null) {
      return;
    }
    this.nowMs = Math.max(this.nowMs, this.alarmAtMs);
    this.storage = { ...this.storage, alarmAtMs: null };
    this.take(stepSender(this.state, { type: "alarm", nowMs: this.nowMs }));
  }

  /** The POST in flight, if there is one, meets its fate. */
  deliver(fate: Fate, random: number): void {
    const { post } = this;
    if (post === null) {
      return;
    }
    this.post = null;
    this.nowMs += 10;
    const at = { nowMs: this.nowMs, random };
    switch (fate.kind) {
      case "refused":
        return this.take(
          stepSender(this.state, {
            type: "refused",
            status: 503,
            reason: "overloaded",
            retryAfterMs: 1000,
            ...at,
          }),
        );
      case "lost_after":
        this.origin.receive(this.epoch, post.hello, post.rows.slice(0, fate.frames), Infinity);
        return this.take(stepSender(this.state, { type: "lost", reason: "reset", ...at }));
      case "lost_before":
        return this.take(stepSender(this.state, { type: "lost", reason: "refused", ...at }));
      case "busy":
      case "answered": {
        const frames = fate.kind === "busy" ? fate.frames : Infinity;
        const messages = this.origin.receive(this.epoch, post.hello, post.rows, frames);
        const { answer, firstNewerFsn } = this.read(messages);
        return this.take(
          stepSender(this.state, { type: "answered", answer, firstNewerFsn, ...at }),
        );
      }
    }
  }

  private read(messages: readonly LinkMessage[]): {
    answer: SenderAnswer;
    firstNewerFsn: number | null;
  } {
    const answer = readAnswer(messages, "b", this.epoch);
    const latestBoot = answer.welcome?.latestBoot ?? Infinity;
    return { answer, firstNewerFsn: this.rows.find((row) => row.boot > latestBoot)?.fsn ?? null };
  }

  private take({ state, effects }: SenderStep): void {
    this.state = state;
    this.storage = { ...this.storage, memory: state.memory };
    for (const effect of effects) {
      this.obey(effect);
    }
    const frames = this.sent.shift();
    if (frames !== undefined) {
      this.take(stepSender(this.state, { type: "sent", frames, nowMs: this.nowMs }));
      return;
    }
    assert.ok(state.memory.acked <= state.highest, "acked ≤ highest");
    assert.equal(state.highest, this.storage.highest);
    assert.equal(this.post !== null, state.phase === "sending");
    const due =
      state.phase !== "idle" && !(state.phase === "waiting" && state.retryAtMs === Infinity);
    assert.equal(this.alarmAtMs !== null, due, "an alarm stands while there is something to do");
    assert.equal(state.linked, this.link !== null);
    assert.equal(state.flightBytes, state.flight.length * frameBytes);
    assert.deepEqual(
      state.flight.map(({ fsn }) => fsn),
      state.flight.map((_, i) => state.memory.acked + 1 + i),
      "the flight is dense from acked + 1",
    );
    assert.ok(state.phase === "streaming" || state.flight.length === 0);
    assert.deepEqual(
      this.rows.map((row) => row.fsn),
      Array.from(
        { length: state.highest - state.memory.acked },
        (_, i) => state.memory.acked + 1 + i,
      ),
      "the rows are those not acked, without gaps",
    );
  }

  private obey(effect: SenderEffect): void {
    switch (effect.type) {
      case "send":
        return this.send(effect.hello, effect.fromFsn);
      case "sendOnLink":
        return this.sendOnLink(effect.hello, effect.fromFsn);
      case "dropLink":
        this.link = null;
        return;
      case "closed":
        return;
      case "trim":
        assert.ok(
          effect.throughFsn <= this.origin.durable(this.epoch),
          "nothing is trimmed above the durable mark",
        );
        this.storage = {
          ...this.storage,
          rows: this.rows.filter((row) => row.fsn > effect.throughFsn),
        };
        return;
      case "giveUp":
        this.storage = {
          ...this.storage,
          rows: this.rows.map((row) => (row.fsn === effect.fsn ? { ...row, dead: true } : row)),
        };
        return;
      case "restartEpoch": {
        const kept = this.rows.filter((row) => row.fsn >= effect.fromFsn);
        const rows = kept.map((row, i) => ({ ...row, fsn: i + 1 }));
        this.storage = {
          ...this.storage,
          epoch: `epoch-${++this.epochs}`,
          rows,
          highest: rows.length,
        };
        return;
      }
      case "arm":
        this.storage = { ...this.storage, alarmAtMs: effect.atMs };
        return;
      case "disarm":
        this.storage = { ...this.storage, alarmAtMs: null };
        return;
      case "report":
        this.reports.push(effect.report);
        return;
    }
  }

  private send(hello: boolean, fromFsn: number): void {
    assert.equal(this.post, null, "one POST in flight");
    const rows = this.rows.filter((row) => row.fsn >= fromFsn).slice(0, framesPerPost);
    assert.equal(rows[0]?.fsn, fromFsn, "no FSN is skipped");
    this.post = { epoch: this.epoch, hello: hello ? this.storage.boot : null, rows };
    this.posts.push({ hello, fsns: rows.map((row) => row.fsn) });
  }

  private sendOnLink(hello: boolean, fromFsn: number): void {
    const rows = this.rows.filter((row) => row.fsn >= fromFsn).slice(0, framesPerPost);
    assert.equal(rows[0]?.fsn, fromFsn, "no FSN is skipped");
    assert.ok(this.link !== null, "a link is there");
    this.link.outbound.push({ epoch: this.epoch, hello: hello ? this.storage.boot : null, rows });
    this.sent.push(rows.map(({ fsn }) => ({ fsn, bytes: frameBytes })));
  }
}
