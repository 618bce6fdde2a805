import { ForebayError } from "../errors/mod.ts";
import { limits } from "../limits.ts";
import { utf8Bytes } from "../utf8/mod.ts";

/**
 * The value of Stream-Seq, or null without one.
 *
 * @throws ForebayError `bad_header` when it is empty or too long
 */
export function parseStreamSeq(text: string | null | undefined): string | null {
  if (text === null || text === undefined) {
    return null;
  }
  const bytes = utf8Bytes(text).length;
  if (bytes === 0 || bytes > limits.streamSeqBytesMax) {
    throw new ForebayError(
      "bad_header",
      `Stream-Seq has ${bytes} bytes, it needs 1 to ${limits.streamSeqBytesMax}`,
    );
  }
  return text;
}

/**
 * Order of two Stream-Seq values, byte by byte of their UTF-8 (Durable Streams §5.2): negative, 0 or positive like
 * a sort's. JavaScript's `<` compares UTF-16 units, which puts U+10000 and above before U+E000.
 */
export function compareSeq(a: string, b: string): number {
  const common = Math.min(a.length, b.length);
  for (let i = 0; i < common; i++) {
    const difference = rank(a.charCodeAt(i)) - rank(b.charCodeAt(i));
    if (difference !== 0) {
      return difference;
    }
  }
  return a.length - b.length;
}

/** Surrogates stand for code points above every other unit's. */
const rank = (unit: number): number => ((unit & 0xf800) === 0xd800 ? unit + 0x10000 : unit);
