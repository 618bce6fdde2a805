/**
 * Runs `task` once when the I/O callbacks of the present event-loop turn are done: what many requests
 * of one turn leave behind is then handled together. No timer; nothing is armed without a call.
 */
export function endOfTurn(task: () => void): void {
  setImmediate(task);
}
