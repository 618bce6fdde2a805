import { request } from "undici";
import { ForebayError } from "../../shared/errors/mod.ts";
import { clock, pause } from "../ports/mod.ts";

const waitMsMax = 15_000;
const stepMs = 50;

/**
 * Resolves when `/livez` answers 200.
 *
 * @throws ForebayError `edge_failed` when it does not within 15 s
 */
export async function untilLive(url: string, signal: AbortSignal): Promise<void> {
  const startedAt = clock.now();
  let last = "no answer";
  while (clock.now() - startedAt < waitMsMax && !signal.aborted) {
    try {
      const answer = await request(`${url}/livez`, {
        signal: AbortSignal.any([signal, AbortSignal.timeout(waitMsMax)]),
      });
      const text = await answer.body.text();
      if (answer.statusCode === 200) {
        return;
      }
      last = `${answer.statusCode} ${text.slice(0, 300)}`;
    } catch (error) {
      last = error instanceof Error ? error.message : String(error);
    }
    await pause(stepMs);
  }
  throw new ForebayError("edge_failed", `${url}/livez does not answer: ${last}`);
}
