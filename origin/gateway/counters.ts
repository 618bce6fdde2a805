/** What a request was, for counting. */
export const routes = [
  "append",
  "frames",
  "create",
  "remove",
  "head",
  "read",
  "long_poll",
  "sse",
  "ingest",
  "list",
  "subscriptions",
  "health",
  "metrics",
  "preflight",
  "other",
] as const;

export type Route = (typeof routes)[number];

const classes = 6;

/** Counts in plain numbers, published when somebody asks (metrics.ts). */
export class Counters {
  /** Answers by route and hundred of the status. */
  readonly #answers = new Float64Array(routes.length * classes);
  readonly #routeIndex = new Map<Route, number>(routes.map((route, i) => [route, i]));
  /** Bytes of bodies taken in, and of records read out. */
  bodyBytesIn = 0;
  readBytesOut = 0;
  /** Appends answered 202 with `Forebay-Ack: none`, and how many of them were refused afterwards. */
  unacknowledged = 0;
  unacknowledgedRefused = 0;
  /** Ingest's ledger (DESIGN, promise 5): received = refused + deduplicated + stored. */
  recordsReceived = 0;
  recordsRefused = 0;
  recordsDeduplicated = 0;
  framesReceived = 0;
  framesRefused = 0;
  /** SSE readers that fell behind their backlog and were moved to catch up from their offset. */
  sseLagged = 0;

  answered(route: Route, status: number): void {
    const at = (this.#routeIndex.get(route) ?? 0) * classes + Math.floor(status / 100);
    this.#answers[at] = (this.#answers[at] ?? 0) + 1;
  }

  /** Non-zero counts as [route, "2xx", count]. */
  answers(): [Route, string, number][] {
    const found: [Route, string, number][] = [];
    routes.forEach((route, i) => {
      for (let hundred = 1; hundred < classes; hundred++) {
        const count = this.#answers[i * classes + hundred] ?? 0;
        if (count > 0) {
          found.push([route, `${hundred}xx`, count]);
        }
      }
    });
    return found;
  }
}
