import { connect } from "node:net";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startGateway, type GatewayUnderTest } from "../origin/gateway/gatewayUnderTest.ts";
import { rawRequest } from "../origin/gateway/rawHttp.ts";
import { anyRequest } from "./anyRequest.ts";
import { runs, seed, timeoutMs } from "./length.ts";

let gateway: GatewayUnderTest;
beforeAll(async () => {
  gateway = await startGateway({ longPollMs: 50, sseLifetimeMs: 50 });
  for (const [path, type] of [
    ["json", "application/json"],
    ["text", "text/plain"],
  ] as const) {
    await fetch(`${gateway.url}/v1/stream/${path}`, {
      method: "PUT",
      headers: { "content-type": type },
    });
  }
});
afterAll(() => gateway.close());

const shown = (bytes: Buffer, text: string): string =>
  `${JSON.stringify(bytes.toString("latin1"))} → ${text.slice(0, 300)}`;

async function expectWell(): Promise<void> {
  expect((await fetch(`${gateway.url}/livez`)).status).toBe(200);
  const metrics = await (await fetch(`${gateway.url}/metrics`)).text();
  expect(metrics).toContain("forebay_requests_waiting 0\n");
  expect(metrics).toContain("forebay_body_held_bytes 0\n");
}

test(
  `I8 no request gets a 500 or no answer, whatever it is (seed ${seed})`,
  async () => {
    await fc.assert(
      fc.asyncProperty(anyRequest, async (bytes) => {
        const { status, text } = await rawRequest(gateway.port, bytes);
        expect(status >= 100 && status < 500, shown(bytes, text)).toBe(true);
      }),
      runs(8000),
    );
    await expectWell();
  },
  timeoutMs,
);

/** What the server said to these bytes and the client's end; fails when it does not end too. */
function untilEnd(bytes: Buffer): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = "";
    const socket = connect({ port: gateway.port, host: "127.0.0.1", allowHalfOpen: true });
    const hang = setTimeout(() => reject(new Error(`no end: ${shown(bytes, text)}`)), 5000);
    socket.on("data", (chunk) => (text += chunk.toString("latin1")));
    socket.on("end", () => socket.end());
    socket.on("error", () => {});
    socket.on("close", () => {
      clearTimeout(hang);
      resolve(text);
    });
    socket.end(bytes);
  });
}

const fragment = fc
  .tuple(
    fc.array(anyRequest, { minLength: 1, maxLength: 3 }),
    fc.double({ min: 0, max: 1, noNaN: true }),
  )
  .map(([requests, part]) => {
    // Several on one connection: all but the last of them stay open.
    const text = Buffer.concat(requests).toString("latin1").replaceAll("Connection: close\r\n", "");
    return Buffer.from(text.slice(0, Math.ceil(text.length * part)), "latin1");
  });

test(
  `I8 no fragment of requests gets a 500, hangs, or leaves something behind (seed ${seed})`,
  async () => {
    await fc.assert(
      fc.asyncProperty(fragment, async (bytes) => {
        const text = await untilEnd(bytes);
        const statuses = [...text.matchAll(/^HTTP\/1\.1 (\d{3}) /gm)].map((match) =>
          Number(match[1]),
        );
        expect(
          statuses.every((status) => status < 500),
          shown(bytes, text),
        ).toBe(true);
      }),
      runs(5000),
    );
    await expectWell();
  },
  timeoutMs,
);
