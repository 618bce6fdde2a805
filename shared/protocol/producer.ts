import { ForebayError } from "../errors/mod.ts";
import type { ProducerTag } from "../frame/mod.ts";
import { limits } from "../limits.ts";
import { utf8Bytes } from "../utf8/mod.ts";
import { parseDecimal } from "./integer.ts";

type Given = string | null | undefined;

/**
 * The idempotent producer of a request (Durable Streams §5.2.1), or null when it names none. All three fields or
 * none.
 *
 * @throws ForebayError `bad_producer`
 */
export function parseProducer(id: Given, epoch: Given, seq: Given): ProducerTag | null {
  const missing = [
    missingName(id, "Producer-Id"),
    missingName(epoch, "Producer-Epoch"),
    missingName(seq, "Producer-Seq"),
  ].filter((name) => name !== null);
  if (missing.length === 3) {
    return null;
  }
  if (typeof id !== "string" || typeof epoch !== "string" || typeof seq !== "string") {
    throw new ForebayError(
      "bad_producer",
      `${missing.join(" and ")} missing: the three come together`,
    );
  }
  return {
    id: checkedId(id),
    epoch: counter("Producer-Epoch", epoch),
    seq: counter("Producer-Seq", seq),
  };
}

function missingName(value: Given, name: string): string | null {
  return typeof value === "string" ? null : name;
}

function checkedId(id: string): string {
  const bytes = utf8Bytes(id).length;
  if (bytes === 0 || bytes > limits.producerIdBytesMax) {
    throw new ForebayError(
      "bad_producer",
      `Producer-Id has ${bytes} bytes, it needs 1 to ${limits.producerIdBytesMax}`,
    );
  }
  return id;
}

function counter(name: string, text: string): number {
  const value = parseDecimal(text);
  if (value === undefined) {
    throw new ForebayError(
      "bad_producer",
      `${name} is ${JSON.stringify(text.slice(0, 64))}, not a decimal integer from 0 to 2^53 - 1`,
    );
  }
  return value;
}
