/**
 * Resolves after `ms`. Unlike the clock's timers it keeps the process alive: a command that waits to try again has
 * nothing else to live for.
 */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}
