import { ForebayError } from "../../shared/errors/mod.ts";
import { frameBytes, type FrameRequest } from "../../shared/frame/mod.ts";
import { limits } from "../../shared/limits.ts";

/**
 * The longest record that an outbox takes from this request: what a frame of `frameBytesMax` has left beside its own header
 * and the request's fields, which is a little less than `recordBytesMax`.
 */
export function outboxRecordBytesMax(request: FrameRequest): number {
  const around = frameBytes([{ ...request, records: [] }]) + 4;
  return Math.min(limits.recordBytesMax, limits.frameBytesMax - around);
}

/**
 * A request with a producer lies in one frame, because its seq names it whole. Without one the outbox lays its records into
 * as many frames as they need, in one transaction, so the batch stays atomic at the edge (F11).
 *
 * @throws ForebayError `body_too_large`, `record_too_large` with the limit, before anything is consumed (F8)
 */
export function refuseTooLargeForOutbox(request: FrameRequest): void {
  const bytesMax = outboxRecordBytesMax(request);
  const tooLong = request.records.findIndex((record) => record.length > bytesMax);
  if (tooLong !== -1) {
    throw new ForebayError(
      "record_too_large",
      tooLongMessage(request.records[tooLong], tooLong, bytesMax),
    );
  }
  const bytes = frameBytes([request]);
  if (request.producer !== null && bytes > limits.frameBytesMax) {
    throw new ForebayError(
      "body_too_large",
      `with a producer and ack=edge a request fits one frame: it would have ${bytes} bytes, the limit is ` +
        `${limits.frameBytesMax}; send less at once, or with ack=origin`,
    );
  }
}

export function tooLongMessage(
  record: Uint8Array | undefined,
  index: number,
  bytesMax: number,
): string {
  return `record ${index} has ${record?.length ?? 0} bytes, the limit with ack=edge is ${bytesMax}`;
}
