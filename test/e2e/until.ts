/** Asks until the answer is there; fails with `what` after 30 s. */
export async function until<T>(what: string, ask: () => Promise<T | undefined>): Promise<T> {
  const deadline = Date.now() + 30_000;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined) {
      return answer;
    }
    if (Date.now() > deadline) {
      throw new Error(`waited 30 s in vain: ${what}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
