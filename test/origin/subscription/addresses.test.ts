import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import {
  AddressPolicy,
  createWebhookClient,
  type Resolve,
  type WebhookClient,
} from "../../../origin/subscription/mod.ts";
import { checkWebhookUrl } from "../../../origin/subscription/webhookUrl.ts";
import { errorOf } from "../../shared/thrown.ts";
import "../gateway/eventually.ts";

const strict = new AddressPolicy(false, ["Hooks.Internal", "10.1.2.3"]);
const local = new AddressPolicy(true, []);

describe("addresses", () => {
  test.each([
    "0.0.0.0",
    "10.0.0.1",
    "100.64.0.1",
    "127.0.0.1",
    "127.255.255.254",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.1",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.1.1",
    "198.18.0.1",
    "198.19.255.255",
    "198.51.100.7",
    "203.0.113.7",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::ffff:127.0.0.1",
    "::ffff:8.8.8.8",
    "::127.0.0.1",
    "64:ff9b::a00:1",
    "64:ff9b:1::1",
    "100::1",
    "2001::1",
    "2001:db8::1",
    "2002:7f00:1::",
    "3fff::1",
    "fc00::1",
    "fd12:3456::1",
    "fe80::1",
    "fe80::1%eth0",
    "fec0::1",
    "ff02::1",
    "not an address",
    "",
  ])("%s may not be called", (address) => {
    expect(strict.allows("example.com", address)).toBe(false);
  });

  test.each([
    "1.1.1.1",
    "8.8.8.8",
    "172.15.0.1",
    "172.32.0.1",
    "192.167.1.1",
    "2606:4700::1111",
    "2a00::1",
  ])("%s may be called", (address) => {
    expect(strict.allows("example.com", address)).toBe(true);
  });

  test("loopback goes with loopback, and with nothing else", () => {
    expect(
      ["127.0.0.1", "::ffff:127.9.9.9", "::1"].map((a) => local.allows("localhost", a)),
    ).toEqual([true, true, true]);
    expect(["10.0.0.1", "::ffff:10.0.0.1", "0.0.0.0"].map((a) => local.allows("x", a))).toEqual([
      false,
      false,
      false,
    ]);
  });

  test("a host the configuration vouches for may be anywhere, whatever its case", () => {
    expect(strict.allows("hooks.internal", "10.0.0.1")).toBe(true);
    expect(strict.allows("HOOKS.internal", "169.254.169.254")).toBe(true);
    expect(strict.allows("evil.hooks.internal", "10.0.0.1")).toBe(false);
  });
});

describe("URLs", () => {
  test.each([
    "https://hooks.example/x?token=s",
    "https://hooks.example:8443/",
    "https://8.8.8.8/",
    "https://[2606:4700::1111]/",
    "http://hooks.internal/x",
    "https://10.1.2.3/x",
  ])("%s is taken", (url) => {
    expect(() => checkWebhookUrl(url, strict)).not.toThrow();
  });

  test.each([
    "",
    "nonsense",
    "ftp://example.com/",
    "file:///etc/passwd",
    "http://example.com/",
    "http://localhost/",
    "http://127.0.0.1:80/",
    "https://localhost/",
    "https://api.localhost/",
    "https://localhost./",
    "https://10.0.0.1/",
    "https://127.1/",
    "https://2130706433/",
    "https://0x7f.0.0.1/",
    "https://017700000001/",
    "https://[::1]/",
    "https://[::ffff:10.0.0.1]/",
    "https://[fe80::1]/",
    "https://169.254.169.254/latest/meta-data/",
    "https://user:password@example.com/",
    "https://user@example.com/",
    "https://example.com/#part",
    `https://example.com/${"x".repeat(2048)}`,
  ])("%s is refused", (url) => {
    const error = errorOf(() => checkWebhookUrl(url, strict));
    expect(error.code).toBe("webhook_rejected");
    expect(error.message).not.toContain("password");
  });

  test("plain http and this machine's names are taken where loopback is", () => {
    for (const url of [
      "http://127.0.0.1:9/x",
      "http://localhost/",
      "http://[::1]:9/",
      "https://localhost/",
    ]) {
      expect(() => checkWebhookUrl(url, local)).not.toThrow();
    }
    expect(errorOf(() => checkWebhookUrl("http://10.0.0.1/hook", local)).code).toBe(
      "webhook_rejected",
    );
  });
});

describe("the guard at the connect", () => {
  const closing: (() => unknown)[] = [];
  afterEach(async () => {
    await Promise.all(closing.splice(0).map((close) => close()));
  });

  async function receiver(
    answer: { status?: number; headers?: Record<string, string>; body?: string } = {},
  ) {
    const hits: string[] = [];
    const server = createServer((request, response) => {
      hits.push(`${request.method} ${request.url} ${request.headers.host}`);
      request.resume();
      response.writeHead(answer.status ?? 200, answer.headers ?? {});
      response.end(answer.body ?? "{}");
    });
    await new Promise<void>((resolve) => {
      server.listen(0, "127.0.0.1", resolve);
    });
    closing.push(() => server.close());
    return { hits, port: (server.address() as AddressInfo).port };
  }

  function client(policy: AddressPolicy, resolve?: Resolve): WebhookClient {
    const made = createWebhookClient(policy, resolve);
    closing.push(() => made.close());
    return made;
  }

  const post = (made: WebhookClient, url: string, signal = new AbortController().signal) =>
    made.post({ url, body: "{}", signature: "s" }, signal);

  test("a name that resolves to a private address is not connected to", async () => {
    const { hits, port } = await receiver();
    const asked: string[] = [];
    const made = client(strict, (host) => {
      asked.push(host);
      return Promise.resolve([{ address: "127.0.0.1", family: 4 }]);
    });
    await expect(post(made, `http://rebind.example:${port}/x`)).rejects.toThrow(
      "127.0.0.1 is not public",
    );
    expect([asked, hits]).toEqual([["rebind.example"], []]);
  });

  test("a literal private address is not connected to, however the URL spells it", async () => {
    const { hits, port } = await receiver();
    for (const host of ["127.0.0.1", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]", "[::1]"]) {
      await expect(post(client(strict), `http://${host}:${port}/`)).rejects.toThrow(
        "may not be called",
      );
    }
    expect(hits).toEqual([]);
  });

  test("what was checked is what is connected to: one question a connection, forbidden answers taken out", async () => {
    const { hits, port } = await receiver();
    let asked = 0;
    // A name server that changes its mind after each answer.
    const made = client(local, () => {
      asked += 1;
      return Promise.resolve(
        asked % 2 === 1
          ? [
              { address: "10.0.0.1", family: 4 },
              { address: "127.0.0.1", family: 4 },
            ]
          : [{ address: "10.0.0.1", family: 4 }],
      );
    });
    const url = `http://rebind.example:${port}/x`;
    expect(await post(made, url)).toEqual({ status: 200, done: false, retryAfterMs: null });
    expect(asked).toBe(1);
    // Time for a connection to be kept, if one were.
    await new Promise((resolve) => setTimeout(resolve, 50));
    // No connection is used again: the second webhook asks anew and is refused.
    await expect(post(made, url)).rejects.toThrow("10.0.0.1 is not public");
    expect([asked, hits]).toEqual([2, [`POST /x rebind.example:${port}`]]);
  });

  test("a name that does not resolve, or to nothing, is a failure", async () => {
    await expect(
      post(
        client(local, () => Promise.resolve([])),
        "http://x.example/",
      ),
    ).rejects.toThrow("may not be called");
    const failing = client(local, () => Promise.reject(new Error("ENOTFOUND")));
    await expect(post(failing, "http://x.example/")).rejects.toThrow("ENOTFOUND");
  });

  test("a redirect is an answer, not an invitation", async () => {
    const target = await receiver();
    const { port } = await receiver({
      status: 307,
      headers: { location: `http://127.0.0.1:${target.port}/inner`, "retry-after": "7" },
    });
    expect(await post(client(local), `http://127.0.0.1:${port}/`)).toEqual({
      status: 307,
      done: false,
      retryAfterMs: 7000,
    });
    expect(target.hits).toEqual([]);
  });

  test("of the answer only the first bytes are read, and only a JSON true is done", async () => {
    const said = async (body: string): Promise<boolean> => {
      const { port } = await receiver({ body });
      return (await post(client(local), `http://127.0.0.1:${port}/`)).done;
    };
    expect(await said('{"done":true}')).toBe(true);
    expect(await said('{"done":"true"}')).toBe(false);
    expect(await said("[true]")).toBe(false);
    expect(await said("null")).toBe(false);
    expect(await said("")).toBe(false);
    expect(await said("\u{0}")).toBe(false);
    expect(await said(`{"done":true,"pad":"${"x".repeat(1 << 20)}"}`)).toBe(false);
  });

  test("a receiver that never answers is left when the signal says so", async () => {
    const server = createServer(() => {});
    await new Promise<void>((resolve) => {
      server.listen(0, "127.0.0.1", resolve);
    });
    closing.push(
      () => server.closeAllConnections(),
      () => server.close(),
    );
    const { port } = server.address() as AddressInfo;
    const abort = new AbortController();
    const answer = post(client(local), `http://127.0.0.1:${port}/`, abort.signal);
    abort.abort(new Error("enough"));
    await expect(answer).rejects.toThrow("enough");
  });
});
