import { expect, test } from "vitest";
import {
  sendToOutbox,
  type OutboxStub,
  type PlacedAnswer,
} from "../../edge/batcher/outboxTarget.ts";
import type { OutboxReply, OutboxRequest } from "../../edge/outbox/mod.ts";
import { clock } from "../../edge/ports/mod.ts";
import { ForebayError } from "../../shared/errors/mod.ts";
import type { Clock } from "../../shared/ports/mod.ts";

function request(batchId: string | null, producerSeq: number | null): OutboxRequest {
  return {
    batchId,
    request: {
      stream: "s",
      flags: 0,
      acceptedAt: 1,
      contentType: "text/plain",
      producer: producerSeq === null ? null : { id: "p", epoch: 0, seq: producerSeq },
      streamSeq: null,
      records: [new Uint8Array([1])],
    },
  };
}

const accepted = (requests: readonly OutboxRequest[]): OutboxReply => ({
  epoch: "e",
  answers: requests.map((_, index) => ({ kind: "accepted", fsn: 1, index, deduplicated: false })),
});
const failure = (marks: object = {}): Error =>
  Object.assign(new Error("the object was reset"), marks);

/** Stubs that do, one after the other, what is written here; the last one again and again. */
function stubs(...appends: OutboxStub["append"][]): {
  open: () => OutboxStub;
  opened: () => number;
} {
  let opened = 0;
  return {
    opened: () => opened,
    open: () => {
      const append = appends[Math.min(opened++, appends.length - 1)];
      if (append === undefined) {
        throw new Error("no stub left");
      }
      return { append };
    },
  };
}

const codeOf = (sent: Promise<unknown>): Promise<string> =>
  sent.then(
    () => "no error",
    (error: unknown) => (error instanceof ForebayError ? error.code : String(error)),
  );
const kinds = (answers: readonly PlacedAnswer[]): string[] =>
  answers.map(({ answer }) => (answer.kind === "refused" ? answer.code : answer.kind));

test("one RPC for the whole batch, answers in order", async () => {
  const { open, opened } = stubs((requests) => Promise.resolve(accepted(requests)));
  const answers = await sendToOutbox(clock, open, [request("b", null), request(null, null)]);
  expect(answers).toEqual([
    { epoch: "e", answer: { kind: "accepted", fsn: 1, index: 0, deduplicated: false } },
    { epoch: "e", answer: { kind: "accepted", fsn: 1, index: 1, deduplicated: false } },
  ]);
  expect(opened()).toBe(1);
});

test("F9 an overloaded outbox is not asked twice, and nothing was stored", async () => {
  const { open, opened } = stubs(() =>
    Promise.reject(failure({ overloaded: true, retryable: true })),
  );
  expect(await codeOf(sendToOutbox(clock, open, [request("b", null)]))).toBe("outbox_unavailable");
  expect(opened()).toBe(1);
});

test("F9 after another failure what has an identity goes once more on a fresh stub; the rest hears that its fate is unknown", async () => {
  const sent: (readonly OutboxRequest[])[] = [];
  const { open, opened } = stubs(
    () => Promise.reject(failure()),
    (requests) => {
      sent.push(requests);
      return Promise.resolve(accepted(requests));
    },
  );
  const batch = [request(null, null), request("b", null), request(null, null), request(null, 4)];
  const answers = await sendToOutbox(clock, open, batch);
  expect(kinds(answers)).toEqual(["outcome_unknown", "accepted", "outcome_unknown", "accepted"]);
  expect(sent).toEqual([[batch[1], batch[3]]]);
  expect(answers[3]?.answer).toMatchObject({ index: 1 });
  expect(opened()).toBe(2);
});

test("F9 one retry and no more, and none when nothing has an identity", async () => {
  const twice = stubs(() => Promise.reject(failure()));
  expect(await codeOf(sendToOutbox(clock, twice.open, [request("b", null)]))).toBe(
    "outcome_unknown",
  );
  expect(twice.opened()).toBe(2);
  const once = stubs(() => Promise.reject(failure()));
  expect(await codeOf(sendToOutbox(clock, once.open, [request(null, null)]))).toBe(
    "outcome_unknown",
  );
  expect(once.opened()).toBe(1);
});

test("an outbox that does not answer ends in outcome_unknown before its waiters give up, without a second try", async () => {
  let now = 0;
  const fast: Clock = {
    now: () => now,
    after: (ms, fire) => {
      now += ms;
      queueMicrotask(fire);
      return { cancel() {} };
    },
  };
  const { open, opened } = stubs(() => new Promise(() => {}));
  expect(await codeOf(sendToOutbox(fast, open, [request("b", null)]))).toBe("outcome_unknown");
  expect(now).toBe(9000);
  expect(opened()).toBe(1);
});
