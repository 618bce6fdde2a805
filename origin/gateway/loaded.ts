import type { Loading } from "../stream/mod.ts";

/**
 * Asks until the answer is in memory.
 *
 * @throws ForebayError `store_failed`
 */
export async function loaded<T extends object>(ask: () => T | Loading): Promise<T> {
  for (;;) {
    const answer = ask();
    if (!("loading" in answer)) {
      return answer;
    }
    await answer.loading;
  }
}
