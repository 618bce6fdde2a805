import { readFileSync, readdirSync } from "node:fs";

/** CPU time a process has used so far, all threads, µs, from the scheduler's own nanosecond clock. */
export function cpuMicros(pid: number): number {
  let nanos = 0;
  for (const task of readdirSync(`/proc/${pid}/task`)) {
    try {
      const [running] = readFileSync(`/proc/${pid}/task/${task}/schedstat`, "utf8").split(" ");
      nanos += Number(running);
    } catch {
      // the thread ended between the listing and the read
    }
  }
  return nanos / 1000;
}
