import type { BodySink, HeldBytes } from "./body.ts";
import type { Head } from "./head.ts";
import type { HeaderBlock } from "./headerBlock.ts";
import type { Target } from "./target.ts";

/** What brings one request and takes its one answer: node:http, or a connection the recogniser reads. */
export interface Channel {
  readonly method: string;
  /** Request target in origin form, as sent. */
  readonly url: string;
  readonly httpVersion: string;
  readonly head: Head;
  readonly target: Target;
  /** Has the body delivered to `sink`. Once, and before anything is awaited. */
  takeBody(bytesMax: number, held: HeldBytes, sink: BodySink): void;
  /**
   * Writes the whole answer; one that nobody waits for any more is dropped.
   *
   * @param shared what many answers have in common
   * @param own flat: name, value, name, value …; `content-length` among them where the status has one
   */
  answer(
    status: number,
    shared: HeaderBlock,
    own: readonly string[],
    body: Uint8Array<ArrayBuffer> | string | null,
  ): void;
}
