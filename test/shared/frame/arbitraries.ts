import fc from "fast-check";
import { catalogue, type ErrorCode } from "../../../shared/errors/mod.ts";
import {
  requestFlag,
  type Frame,
  type FrameRequest,
  type LinkMessage,
} from "../../../shared/frame/mod.ts";

const uint = fc.maxSafeNat();
const text = fc.string({ unit: "grapheme", maxLength: 80 });
const token = fc.stringMatching(/^[a-z0-9]{1,20}$/);
const path = fc.stringMatching(/^[a-z0-9/%-]{1,90}$/);
const code = fc.constantFrom(...(Object.keys(catalogue) as ErrorCode[]));
const bytes = fc.uint8Array({ maxLength: 300 });
const fsn = fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER });

const head = {
  stream: path,
  acceptedAt: uint,
  contentType: fc.option(text),
  producer: fc.option(fc.record({ id: text, epoch: uint, seq: uint })),
  streamSeq: fc.option(text),
};
const body: fc.Arbitrary<FrameRequest> = fc.record({
  ...head,
  flags: fc.constantFrom(0, requestFlag.create),
  records: fc.tuple(bytes),
});
const split: fc.Arbitrary<FrameRequest> = fc.record({
  ...head,
  flags: fc.constantFrom(requestFlag.json, requestFlag.json | requestFlag.create),
  records: fc.array(bytes, { minLength: 1, maxLength: 20 }),
});
export const requests = fc.array(fc.oneof(body, split), { minLength: 1, maxLength: 8 });

const outboxFrame: fc.Arbitrary<Frame> = fc.record({
  flags: fc.constant(0),
  buffer: token,
  epoch: token,
  boot: uint,
  fsn,
  voidReason: fc.constant(""),
  requests,
});
const directFrame: fc.Arbitrary<Frame> = requests.map((all) => ({
  flags: 1,
  buffer: "",
  epoch: "",
  boot: 0,
  fsn: 0,
  voidReason: "",
  requests: all,
}));
const voidFrame: fc.Arbitrary<Frame> = fc.record({
  flags: fc.constant(2),
  buffer: token,
  epoch: token,
  boot: uint,
  fsn,
  voidReason: text,
  requests: fc.constant([]),
});

const headers = fc.dictionary(fc.stringMatching(/^[a-z-]{1,20}$/), text, { noNullPrototype: true });

/** Every kind of message, with every kind of content. */
export const message: fc.Arbitrary<LinkMessage> = fc.oneof(
  fc.record({
    type: fc.constant("frame" as const),
    frame: fc.oneof(outboxFrame, directFrame, voidFrame),
  }),
  fc.record({
    type: fc.constant("hello" as const),
    hello: fc.record({ buffer: text, epoch: text, boot: uint, highestFsn: uint }),
  }),
  fc.record({
    type: fc.constant("welcome" as const),
    welcome: fc.record({ journalId: text, buffer: text, durableFsn: uint, latestBoot: uint }),
  }),
  fc.record({
    type: fc.constant("ack" as const),
    ack: fc.record({ buffer: text, epoch: text, received: uint, durable: uint, replicated: uint }),
  }),
  fc.record({
    type: fc.constant("nack" as const),
    nack: fc.record({
      buffer: text,
      epoch: text,
      fsn: uint,
      code,
      retryable: fc.boolean(),
      expectedFsn: uint,
      message: text,
    }),
  }),
  fc.record({
    type: fc.constant("credit" as const),
    credit: fc.record({ buffer: text, bytes: uint }),
  }),
  fc.record({
    type: fc.constant("results" as const),
    results: fc.array(
      fc.record({ status: uint, code: fc.option(code), detail: fc.option(text), headers }),
      {
        maxLength: 40,
      },
    ),
  }),
);
