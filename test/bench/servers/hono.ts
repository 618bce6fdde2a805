/** Appends by a Hono route on the same streams and journal (the directory given): what the frame alone costs. */
import { serve } from "@hono/node-server";
import { Hono } from "hono";
import { openJournal } from "../../../origin/journal/mod.ts";
import { clock, random } from "../../../origin/ports/mod.ts";
import { realDisk } from "../../../origin/storage/mod.ts";
import { createStreams, type Verdict } from "../../../origin/stream/mod.ts";
import { normalizeStreamPath } from "../../../shared/protocol/mod.ts";
import { ResidentRecords } from "../../origin/store/harness.ts";
import { resident } from "../../origin/stream/harness.ts";

const dir = process.argv[2];
if (dir === undefined) {
  throw new Error("the data directory is missing");
}
const streams = resident(createStreams({ clock, store: new ResidentRecords(2 ** 31) }));
const journal = await openJournal(
  {
    ...{ disk: realDisk, storage: "auto", dir, clock, random },
    events: {
      onDurable: (durable) => streams.onDurable(durable),
      onFull: () => {},
      onFailed: (error) => streams.onFailed(error),
    },
  },
  (lsn, bytes) => streams.replay(lsn, bytes),
);
streams.start(journal);

async function whenDurable(verdict: Verdict): Promise<Response> {
  await new Promise<void>((release, fail) => streams.hold(verdict.lsn, { release, fail }));
  const headers: Record<string, string> = {};
  for (let i = 0; i + 1 < verdict.headers.length; i += 2) {
    headers[verdict.headers[i] as string] = verdict.headers[i + 1] as string;
  }
  return new Response(null, { status: verdict.status, headers });
}

const app = new Hono();
app.put("/v1/stream/:path{.+}", (c) => {
  const path = normalizeStreamPath(c.req.param("path"));
  const contentType = c.req.header("content-type") ?? null;
  const plain = { ttlSeconds: null, expiresAt: null, closed: false, fork: null };
  const body = new Uint8Array(0);
  return whenDurable(streams.create({ path, contentType, ...plain, body }));
});
app.post("/v1/stream/:path{.+}", async (c) =>
  whenDurable(
    streams.append({
      path: normalizeStreamPath(c.req.param("path")),
      contentType: c.req.header("content-type") ?? null,
      body: new Uint8Array(await c.req.arrayBuffer()),
      ...{ producer: null, streamSeq: null, expectedOffset: null, close: false },
    }),
  ),
);
serve({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" }, ({ port }) =>
  console.log(`http://127.0.0.1:${port}`),
);
process.on("SIGTERM", () => process.exit(0));
