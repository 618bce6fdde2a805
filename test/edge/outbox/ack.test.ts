import { evictDurableObject } from "cloudflare:test";
import { beforeEach, expect, test } from "vitest";
import { formatPosition } from "../../../shared/ids/mod.ts";
import { LinkOrigin } from "./linkOrigin.ts";
import { again, append, drained, freshOutbox, request } from "./outboxUnderTest.ts";

let origin: LinkOrigin;
let open: () => void;
beforeEach(() => {
  origin = new LinkOrigin();
  origin.gate = new Promise((resolve) => {
    open = resolve;
  });
  origin.install();
});

test("F22 a waiting ack is woken by the advance that reaches it", async () => {
  const stub = freshOutbox();
  const { epoch } = await append(stub, request());
  const { buffer } = await stub.status();
  const at = (fsn: number) => formatPosition({ buffer, epoch, fsn, index: 0 });
  expect(await stub.ack(at(1), 0)).toEqual({ kind: "state", received: false, durable: false });
  const startedAt = Date.now();
  const waiting = Promise.all([stub.ack(at(1), 20_000), stub.ack(at(1), 20_000)]);
  await append(stub, request());
  const second = stub.ack(at(2), 20_000);
  open();
  expect(await waiting).toEqual([
    { kind: "state", received: true, durable: true },
    { kind: "state", received: true, durable: true },
  ]);
  expect(await second).toEqual({ kind: "state", received: true, durable: true });
  expect(Date.now() - startedAt).toBeLessThan(5000);
});

test("F22 it answers what is known when its time is up", async () => {
  const stub = freshOutbox();
  const { epoch } = await append(stub, request());
  const { buffer } = await stub.status();
  const startedAt = Date.now();
  const position = formatPosition({ buffer, epoch, fsn: 1, index: 0 });
  expect(await stub.ack(position, 100)).toEqual({
    kind: "state",
    received: false,
    durable: false,
  });
  expect(Date.now() - startedAt).toBeGreaterThanOrEqual(95);
  open();
  await drained(stub);
  await evictDurableObject(stub);
  expect(await again(stub).ack(position, 0)).toMatchObject({ durable: true });
});

test("F22 a position of another buffer, epoch or a later FSN is not found, and not waited for", async () => {
  const stub = freshOutbox();
  const { epoch } = await append(stub, request());
  const { buffer } = await stub.status();
  const wrong = [
    "nonsense",
    `other:1.${epoch}.1.0`,
    `${buffer}.0abc.1.0`,
    `${buffer}.${epoch}.2.0`,
    `${buffer}.${epoch}.0.0`,
  ];
  for (const position of wrong) {
    expect(await stub.ack(position, 20_000)).toMatchObject({ kind: "refused", code: "not_found" });
  }
  open();
});
