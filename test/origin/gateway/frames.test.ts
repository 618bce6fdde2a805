import { afterEach, beforeEach, expect, test } from "vitest";
import {
  decodeMessages,
  encodeMessage,
  frameFlag,
  requestFlag,
  type Frame,
  type FrameRequest,
  type LinkMessage,
} from "../../../shared/frame/mod.ts";
import { framesContentType } from "../../../shared/protocol/mod.ts";
import { startGateway, type GatewayUnderTest } from "./gatewayUnderTest.ts";
import { eventually } from "./eventually.ts";

let gateway: GatewayUnderTest;
beforeEach(async () => {
  gateway = await startGateway();
});
afterEach(() => gateway.close());

const outbox = { buffer: "test:0", epoch: "e1", boot: 1 };
const hello: LinkMessage = { type: "hello", hello: { ...outbox, highestFsn: 0 } };

function ingestRequest(value: number, seq: number | null = null): FrameRequest {
  return {
    stream: "in",
    flags: requestFlag.create | requestFlag.json,
    acceptedAt: 1000,
    contentType: "application/json",
    producer: seq === null ? null : { id: "p", epoch: 0, seq },
    streamSeq: null,
    records: [new TextEncoder().encode(String(value))],
  };
}

function outboxFrame(fsn: number, requests: FrameRequest[]): LinkMessage {
  const frame: Frame = { ...outbox, flags: 0, fsn, voidReason: "", requests };
  return { type: "frame", frame };
}

function directFrame(requests: FrameRequest[]): LinkMessage {
  const frame: Frame = {
    flags: frameFlag.direct,
    buffer: "",
    epoch: "",
    boot: 0,
    fsn: 0,
    voidReason: "",
    requests,
  };
  return { type: "frame", frame };
}

function post(messages: LinkMessage[]): Promise<Response> {
  const body = new Uint8Array(Buffer.concat(messages.map(encodeMessage)));
  return fetch(`${gateway.url}/v1/frames`, {
    method: "POST",
    headers: { "content-type": framesContentType },
    body,
  });
}

async function push(...messages: LinkMessage[]): Promise<LinkMessage[]> {
  const answer = await post(messages);
  expect([answer.status, answer.headers.get("content-type")]).toEqual([200, framesContentType]);
  return decodeMessages(new Uint8Array(await answer.arrayBuffer()));
}

const stored = async (): Promise<string> => (await fetch(`${gateway.url}/v1/stream/in`)).text();
const ack = (durable: number): LinkMessage => ({
  type: "ack",
  ack: { buffer: "test:0", epoch: "e1", received: durable, durable, replicated: 0 },
});

test("HELLO and frames of an outbox are answered by WELCOME and one cumulative ACK, last", async () => {
  const answers = await push(
    hello,
    outboxFrame(1, [ingestRequest(1), ingestRequest(2)]),
    outboxFrame(2, [ingestRequest(3)]),
  );
  expect(answers).toMatchObject([
    { type: "welcome", welcome: { journalId: "stepped-journal", buffer: "test:0", durableFsn: 0 } },
    ack(2),
  ]);
  expect(await stored()).toBe("[1,2,3]");
});

test("a frame that comes again is acknowledged, not applied", async () => {
  await push(hello, outboxFrame(1, [ingestRequest(1)]));
  expect(await push(outboxFrame(1, [ingestRequest(1)]))).toEqual([ack(1)]);
  expect(
    await push(outboxFrame(1, [ingestRequest(1)]), outboxFrame(2, [ingestRequest(2)])),
  ).toEqual([ack(2)]);
  expect(await stored()).toBe("[1,2]");
});

test("after a NACK nothing further of the POST is looked at, and what came before is acknowledged", async () => {
  const answers = await push(
    hello,
    outboxFrame(1, [ingestRequest(1)]),
    outboxFrame(3, [ingestRequest(3)]),
    outboxFrame(2, [ingestRequest(2)]),
  );
  expect(answers.map(({ type }) => type)).toEqual(["welcome", "nack", "ack"]);
  expect(answers[1]).toMatchObject({ nack: { fsn: 3, code: "frame_gap", expectedFsn: 2 } });
  expect(answers[2]).toEqual(ack(1));
  expect(await stored()).toBe("[1]");
});

test("without HELLO a frame is refused as retryable", async () => {
  const [nack] = await push(outboxFrame(1, [ingestRequest(1)]));
  expect(nack).toMatchObject({ type: "nack", nack: { code: "hello_required", retryable: true } });
});

test("a frame the journal cannot take comes again", async () => {
  await push(hello);
  gateway.journal.refusal = "disk_full";
  const [nack] = await push(outboxFrame(1, [ingestRequest(1)]));
  expect(nack).toMatchObject({
    type: "nack",
    nack: { fsn: 1, code: "disk_full", retryable: true, expectedFsn: 1 },
  });
  gateway.journal.refusal = null;
  expect(await push(outboxFrame(1, [ingestRequest(1)]))).toEqual([ack(1)]);
});

test("a HELLO the journal cannot take refuses the POST, ends nothing, and comes again", async () => {
  gateway.journal.refusal = "disk_full";
  const refused = await post([hello, outboxFrame(1, [ingestRequest(1)])]);
  expect(refused.status).toBe(507);
  expect(await refused.json()).toMatchObject({ code: "disk_full", retryable: true });
  gateway.journal.refusal = null;
  const [, acked] = await push(hello, outboxFrame(1, [ingestRequest(1)]));
  expect(acked).toEqual(ack(1));
  expect(await stored()).toBe("[1]");
});

test("a direct frame answers each request with its own status and true offset", async () => {
  await fetch(`${gateway.url}/v1/stream/text`, {
    method: "PUT",
    headers: { "content-type": "text/plain" },
  });
  const plain = (stream: string, body: string): FrameRequest => ({
    ...ingestRequest(0),
    stream,
    flags: 0,
    contentType: "text/plain",
    records: [new TextEncoder().encode(body)],
  });
  const [results] = await push(
    directFrame([
      plain("text", "a"),
      plain("nowhere", "b"),
      plain("text", "cd"),
      ingestRequest(7, 0),
    ]),
  );
  expect(results).toMatchObject({
    type: "results",
    results: [
      {
        status: 204,
        code: null,
        headers: { "stream-next-offset": "0000000000000001_0000000000000001" },
      },
      { status: 404, code: "stream_not_found" },
      {
        status: 204,
        code: null,
        headers: { "stream-next-offset": "0000000000000002_0000000000000003" },
      },
      { status: 200, code: null, headers: { "producer-epoch": "0", "producer-seq": "0" } },
    ],
  });
});

test("a direct frame the journal cannot take answers every request so", async () => {
  await fetch(`${gateway.url}/v1/stream/in`, {
    method: "PUT",
    headers: { "content-type": "application/json" },
  });
  gateway.journal.refusal = "disk_full";
  const [results] = await push(directFrame([ingestRequest(1), ingestRequest(2)]));
  expect(results).toMatchObject({
    type: "results",
    results: [
      { status: 507, code: "disk_full" },
      { status: 507, code: "disk_full" },
    ],
  });
});

test("P17 the answer waits for the newest entry, and is of unknown outcome when its commit fails", async () => {
  await push(hello);
  gateway.journal.held = true;
  const first = post([outboxFrame(1, [ingestRequest(1)])]);
  await eventually(() => gateway.journal.reserved - gateway.journal.durable).toBe(1);
  const replay = post([outboxFrame(1, [ingestRequest(1)])]);
  const late = Symbol("late");
  const wait = (): Promise<unknown> => new Promise((resolve) => setTimeout(resolve, 150, late));
  expect(await Promise.race([first, replay, wait()])).toBe(late);
  gateway.journal.fail("the disk is gone");
  for (const answer of [await first, await replay]) {
    expect([answer.status, ((await answer.json()) as { code: string }).code]).toEqual([
      503,
      "outcome_unknown",
    ]);
  }
});

test("a damaged message is a problem for the whole POST, nothing applied", async () => {
  const body = new Uint8Array(
    Buffer.concat([hello, outboxFrame(1, [ingestRequest(1)])].map(encodeMessage)),
  );
  body[body.length - 1] = (body.at(-1) ?? 0) ^ 1;
  const answer = await fetch(`${gateway.url}/v1/frames`, {
    method: "POST",
    headers: { "content-type": framesContentType },
    body,
  });
  expect([answer.status, ((await answer.json()) as { code: string }).code]).toEqual([
    400,
    "bad_frame",
  ]);
  expect((await fetch(`${gateway.url}/v1/stream/in`)).status).toBe(404);
});

test("an empty POST is no message", async () => {
  const answer = await post([]);
  expect([answer.status, ((await answer.json()) as { code: string }).code]).toEqual([
    400,
    "bad_frame",
  ]);
});
