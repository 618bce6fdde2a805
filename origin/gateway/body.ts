import type { Exchange } from "./exchange.ts";

/**
 * The whole body, for the handlers that are not on the hot path. Call before anything is awaited. When the client
 * goes away first, the promise is never settled and is collected with its request.
 *
 * @throws ForebayError `body_too_large` | `unsupported_media_type` | `too_many_waiting`
 */
export function bodyOf(exchange: Exchange, bytesMax: number): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    exchange.enter();
    const settle =
      <T>(then: (value: T) => void) =>
      (value: T): void => {
        exchange.leave();
        then(value);
      };
    try {
      exchange.takeBody(bytesMax, {
        onBody: settle((body: Uint8Array) => {
          exchange.context.counters.bodyBytesIn += body.byteLength;
          resolve(body);
        }),
        onBodyRefused: settle(reject),
        onBodyAborted: () => exchange.leave(),
      });
    } catch (error) {
      exchange.leave();
      reject(error as Error);
    }
  });
}
