import { mkdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { chromium, type Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startEdge, startOrigin, type EdgeProcess, type OriginProcess } from "./harness.ts";
import { drained } from "./outboxes.ts";
import { servePage } from "./page/server.ts";
import { readAll } from "./stream.ts";
import { until } from "./until.ts";

interface PageEvent {
  readonly visit: string;
  readonly n: number;
  readonly via: string;
}

const key = "browser-test-key";
/** Pages of this machine's own addresses may always call; a page under this name is somebody else's. */
const strangeHost = "stranger.example";
const pictures = fileURLToPath(new URL("../../.build/screenshots/", import.meta.url));

/** Debian's Chromium; the flags keep it from calling home. */
const launch = (): Promise<Browser> =>
  chromium.launch({
    executablePath: "/usr/bin/chromium",
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
      `--host-resolver-rules=MAP ${strangeHost} 127.0.0.1`,
    ],
  });

describe("a real page in Chromium", () => {
  let origin: OriginProcess;
  let edge: EdgeProcess;
  let site: Awaited<ReturnType<typeof servePage>>;
  let browser: Browser;

  beforeAll(async () => {
    mkdirSync(pictures, { recursive: true });
    origin = await startOrigin({ key });
    site = await servePage();
    edge = await startEdge({
      originUrl: origin.url,
      key,
      allowedOrigins: [new URL(site.url).origin],
    });
    browser = await launch();
  });
  afterAll(async () => {
    await browser?.close();
    await site?.stop();
    await edge?.stop();
    await origin?.stop();
  });

  const address = (stream: string, visit: string): string =>
    `${site.url}?${new URLSearchParams({ edge: edge.url, stream, visit, key }).toString()}`;

  test("I2 I5 sends by fetch and sendBeacon, on unload too, and follows live by SSE", async () => {
    const stream = "web/events";
    await fetch(`${edge.url}/v1/stream/${stream}`, {
      method: "PUT",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    });
    const page = await browser.newPage({ viewport: { width: 1100, height: 700 } });
    const errors: string[] = [];
    page.on("pageerror", (error) => errors.push(String(error)));
    page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
    await page.goto(address(stream, "first"));
    await page.getByText("connected").waitFor();
    for (let i = 0; i < 5; i++) {
      await page.click("#fetch");
    }
    await page.waitForFunction(() => document.getElementById("acked")?.textContent === "5");
    for (let i = 0; i < 3; i++) {
      await page.click("#beacon");
    }
    await page.waitForFunction(() => document.getElementById("count")?.textContent === "8");
    await page.screenshot({ path: `${pictures}first-visit.png` });
    expect(errors).toEqual([]);

    // leaving the page sends one more; the next visit sees it live or caught up
    await page.goto(address(stream, "second"));
    await page.waitForFunction(() => document.getElementById("count")?.textContent === "9");
    await page.click("#fetch");
    await page.waitForFunction(() => document.getElementById("count")?.textContent === "10");
    await page.screenshot({ path: `${pictures}second-visit.png` });
    await page.close({ runBeforeUnload: true });

    await until("the last unload beacon is stored", async () => {
      await drained(edge.url, stream, key);
      const stored = await readAll<PageEvent>(origin.url, stream);
      return stored.length >= 11 ? stored : undefined;
    });
    const stored = await readAll<PageEvent>(origin.url, stream);
    const names = stored.map(({ visit, n, via }) => `${visit} ${n} ${via}`).sort();
    expect(names).toEqual(
      [
        ...[0, 1, 2, 3, 4].map((n) => `first ${n} fetch`),
        ...[5, 6, 7].map((n) => `first ${n} beacon`),
        "first 8 unload",
        "second 0 fetch",
        "second 1 unload",
      ].sort(),
    );
  });

  test("I5 a page of another web origin gets nothing in and reads nothing", async () => {
    const stranger = await servePage();
    try {
      const page = await browser.newPage();
      const query = new URLSearchParams({ edge: edge.url, stream: "web/strange", visit: "x", key });
      const { port } = new URL(stranger.url);
      await page.goto(`http://${strangeHost}:${port}/?${query.toString()}`);
      const outcome = await page.evaluate(async (url) => {
        const answer = await fetch(url, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: "[1]",
        }).catch((error: unknown) => String(error));
        return typeof answer === "string" ? answer : String(answer.status);
      }, `${edge.url}/v1/ingest/web/strange?key=${key}`);
      expect(outcome).toContain("Failed to fetch");
      await page.close();
    } finally {
      await stranger.stop();
    }
    const read = await fetch(`${origin.url}/v1/stream/web/strange`);
    expect(read.status).toBe(404);
  });
});
