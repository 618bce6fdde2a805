import { expect, test } from "vitest";
import type { Lsn } from "../../../shared/ids/mod.ts";
import { type Journal, openJournal } from "../../../origin/journal/mod.ts";
import { MemoryDisk } from "../../../origin/storage/mod.ts";
import { ResidentRecords } from "../store/harness.ts";
import { createStreams } from "../../../origin/stream/mod.ts";
import { seededRandom } from "../seededRandom.ts";
import {
  contents,
  ingested,
  isRefused,
  outboxFrame,
  post,
  put,
  Reply,
  resident,
  type ResidentStreams,
  tag,
  TestClock,
} from "./harness.ts";

/*
 * Streams over the real journal, on a disk that loses what was not synced: what was answered is there, once.
 */

const clock = new TestClock();
const random = seededRandom(7);

async function open(disk: MemoryDisk): Promise<{ streams: ResidentStreams; journal: Journal }> {
  const streams = createStreams({ clock, store: new ResidentRecords(1 << 26) });
  const journal = await openJournal(
    {
      dir: "/data",
      disk,
      clock,
      random,
      segmentBytes: 64 * 1024,
      budgetBytes: 64 * 64 * 1024,
      events: {
        onDurable: (durable) => streams.onDurable(durable),
        onFailed: (error) => streams.onFailed(error),
      },
    },
    (lsn, bytes) => streams.replay(lsn, bytes),
  );
  streams.start(journal);
  return { streams: resident(streams), journal };
}

function held(streams: ResidentStreams, lsn: Lsn): Reply {
  const reply = new Reply();
  streams.hold(lsn, reply);
  return reply;
}

test("P9 J28 what was answered survives a power cut, each record once, with its producer and FSN", async () => {
  let disk = new MemoryDisk();
  let fsn = 0;
  let seq = 0;
  let life = 0;
  let [sent, lost] = [0, 0];
  for (let round = 0; round < 12; round++) {
    const { streams, journal } = await open(disk);
    const hello = { buffer: "eu:0", epoch: "e1", boot: round + 1, highestFsn: fsn };
    const greeting = streams.hello(hello);
    if (round === 0) {
      streams.create(put("s", { contentType: "application/json" }));
    }
    fsn = greeting.welcome.durableFsn;
    const replies: { reply: Reply; record: string }[] = [];
    const before = contents(streams, "s");
    seq = before.filter((record) => record.startsWith('"p')).length;
    for (let i = 0; i < 40; i++) {
      life += 1;
      const [direct, produced, framed] = [`"d${life}"`, `"p${seq}"`, `"f${fsn + 1}"`];
      const json = { contentType: "application/json" };
      const producer = tag("P", 0, seq);
      const frame = outboxFrame(fsn + 1, [ingested("s", [framed])], { boot: round + 1 });
      const one = streams.append(post("s", direct, json));
      const two = streams.append(post("s", produced, { ...json, producer }));
      const three = streams.applyFrame(frame);
      expect([one.status, two.status, three.kind]).toEqual([204, 200, "applied"]);
      replies.push({ reply: held(streams, one.lsn), record: direct });
      replies.push({ reply: held(streams, two.lsn), record: produced });
      if (three.kind === "applied") {
        replies.push({ reply: held(streams, three.lsn), record: framed });
      }
      seq += 1;
      fsn += 1;
      if (random.next() < 0.3) {
        await journal.flush();
      }
    }
    const answered = replies
      .filter(({ reply }) => reply.state === "sent")
      .map(({ record }) => record);
    disk = disk.crash(random, random.next());
    const after = await open(disk);
    const kept = contents(after.streams, "s");
    expect(kept.slice(0, before.length)).toEqual(before);
    expect(new Set(kept).size).toBe(kept.length);
    for (const record of answered) {
      expect(kept).toContain(record);
    }
    sent += answered.length;
    lost += replies.length - (kept.length - before.length);
    const framed = kept.filter((record) => record.startsWith('"f')).length;
    const { welcome } = after.streams.hello(hello);
    expect(welcome.durableFsn).toBe(framed);
    await after.journal.close();
  }
  expect([sent > 0, lost > 0]).toEqual([true, true]);
}, 60_000);

test("closing lets every reply go; opened again the streams are the same", async () => {
  const disk = new MemoryDisk();
  const first = await open(disk);
  first.streams.create(put("s"));
  const reply = held(first.streams, first.streams.append(post("s", "x", { close: true })).lsn);
  await first.journal.close();
  expect(reply.state).toBe("sent");
  expect(() => first.streams.create(put("t"))).toThrow(
    expect.objectContaining({ code: "shutting_down" }),
  );
  const second = await open(disk);
  expect(contents(second.streams, "s")).toEqual(["x"]);
  expect(second.streams.meta("s")).toMatchObject({ closed: true });
  expect(isRefused(second.streams.meta("t"))).toBe(true);
  expect(second.streams.stats()).toEqual({ ...first.streams.stats(), waiting: 0 });
  await second.journal.close();
});
