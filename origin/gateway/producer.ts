import type { ProducerTag } from "../../shared/frame/mod.ts";
import { parseProducer } from "../../shared/protocol/mod.ts";
import type { Head, Target } from "../front/mod.ts";

/**
 * Who writes, from the producer header fields; a beacon cannot set any, so `query` may carry them
 * instead (`producerId`, `epoch`, `seq`).
 *
 * @throws ForebayError `bad_producer`
 */
export function producerOf(head: Head, query: Target | null): ProducerTag | null {
  return parseProducer(
    head.exact("producer-id") ?? query?.one("producerId") ?? null,
    head.exact("producer-epoch") ?? query?.one("epoch") ?? null,
    head.exact("producer-seq") ?? query?.one("seq") ?? null,
  );
}
