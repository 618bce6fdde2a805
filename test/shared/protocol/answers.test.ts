import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  corsHeaders,
  formatEtag,
  ifNoneMatch,
  loopbackOrigins,
  parseAllowedOrigins,
  preflightHeaders,
  responseCursor,
  securityHeaders,
} from "../../../shared/protocol/mod.ts";
import { codeOf } from "../thrown.ts";

describe("cursors", () => {
  const epochMs = Date.parse("2024-10-09T00:00:00Z");

  test.each<[string, number, string]>([
    ["the epoch", 0, "0"],
    ["the last ms of the first interval", 19_999, "0"],
    ["the second interval", 20_000, "1"],
    ["a day later", 86_400_000, "4320"],
    ["before the epoch", -1, "0"],
  ])("%s", (_, ms, cursor) => {
    expect(responseCursor(null, epochMs + ms, 0)).toBe(cursor);
  });

  test("a client that is behind gets the present interval", () => {
    expect(responseCursor("4319", epochMs + 86_400_000, 0.5)).toBe("4320");
  });

  test("a client that is level or ahead is moved on by 1 s to 1 h of intervals", () => {
    const nowMs = epochMs + 86_400_000;
    expect(responseCursor("4320", nowMs, 0)).toBe("4321");
    expect(responseCursor("4320", nowMs, 0.999999)).toBe("4500");
    expect(responseCursor("5000", nowMs, 0.5)).toBe("5091");
  });

  test("it is always above the client's and never behind the clock", () => {
    const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
    fc.assert(
      fc.property(fc.nat(999_999_999_999_999), fc.maxSafeNat(), random, (client, nowMs, r) => {
        const cursor = Number(responseCursor(String(client), nowMs, r));
        expect(cursor).toBeGreaterThan(client);
        expect(cursor).toBeGreaterThanOrEqual(Math.floor((nowMs - epochMs) / 20_000));
        expect(Number.isSafeInteger(cursor)).toBe(true);
      }),
    );
  });

  test.each(["", "abc", "-1", "1.5", "1e9", "9999999999999999", "12 "])(
    "%j counts as none",
    (cursor) => {
      expect(responseCursor(cursor, epochMs + 20_000, 0)).toBe("1");
    },
  );
});

describe("P6 entity tags", () => {
  const part = { streamId: 7, start: "0_0", end: "1_5", closed: false };
  const etag = formatEtag(part);

  test("differ by stream generation, start, end and closure", () => {
    const tags = [
      part,
      { ...part, streamId: 8 },
      { ...part, start: "0_1" },
      { ...part, end: "1_6" },
      { ...part, closed: true },
    ].map(formatEtag);
    expect(tags).toEqual([
      '"7.0_0.1_5"',
      '"8.0_0.1_5"',
      '"7.0_1.1_5"',
      '"7.0_0.1_6"',
      '"7.0_0.1_5.closed"',
    ]);
  });

  test.each<[string, boolean]>([
    ['"7.0_0.1_5"', true],
    ['W/"7.0_0.1_5"', true],
    ['"a", "7.0_0.1_5"', true],
    ['"a" , W/"b",\t"7.0_0.1_5" ', true],
    [',, "7.0_0.1_5",', true],
    ['"a,b", "7.0_0.1_5"', true],
    ["*", true],
    [" * ", true],
    ["", false],
    ['"wrong-etag"', false],
    ["7.0_0.1_5", false],
    ['w/"7.0_0.1_5"', false],
    ['"7.0_0.1_5', false],
    ['"a" "7.0_0.1_5"', false],
    ['*, "a"', false],
    ['"x7.0_0.1_5"', false],
  ])("If-None-Match: %s → %s", (value, matches) => {
    expect(ifNoneMatch(value, etag)).toBe(matches);
  });

  test("weak comparison ignores the weakness of either side", () => {
    expect(ifNoneMatch('"a"', 'W/"a"')).toBe(true);
  });

  test("a hostile header costs no more than its length", () => {
    const started = performance.now();
    expect(ifNoneMatch('"'.repeat(16_384), etag)).toBe(false);
    expect(ifNoneMatch(`${" ,".repeat(8_000)}x`, etag)).toBe(false);
    expect(performance.now() - started).toBeLessThan(200);
  });
});

describe("I5 P13 CORS", () => {
  const list = parseAllowedOrigins(["https://example.com", "http://shop.test:8080"]);

  test("without an Origin only Vary", () => {
    expect(corsHeaders(null, list)).toEqual({ vary: "Origin" });
  });

  test("an allowed origin is echoed exactly, without credentials", () => {
    const headers = corsHeaders("https://example.com", list);
    expect(headers?.["access-control-allow-origin"]).toBe("https://example.com");
    expect(headers?.["vary"]).toBe("Origin");
    expect(headers).not.toHaveProperty("access-control-allow-credentials");
    for (const name of [
      "stream-next-offset",
      "stream-cursor",
      "stream-closed",
      "etag",
      "retry-after",
      "forebay-position",
    ]) {
      expect(headers?.["access-control-expose-headers"]?.split(", ")).toContain(name);
    }
  });

  test.each([
    "https://example.com.evil.test",
    "https://evil.test",
    "http://example.com",
    "https://example.com:8443",
    "https://EXAMPLE.com",
    "https://example.com/",
    "null",
    "",
    "http://localhost",
  ])("%j is not allowed by the list", (origin) => {
    expect(corsHeaders(origin, list)).toBeNull();
  });

  test("loopback is this machine at any port, and nothing that looks like it", () => {
    const mine = [
      "http://localhost",
      "http://localhost:5173",
      "https://127.0.0.1:8787",
      "http://[::1]:3000",
    ];
    for (const origin of mine) {
      expect(corsHeaders(origin, loopbackOrigins)?.["access-control-allow-origin"]).toBe(origin);
    }
    const others = [
      "http://localhost.evil.test",
      "http://127.0.0.1.evil.test",
      "http://localhost:80:80",
      "ftp://localhost",
      "null",
    ];
    for (const origin of others) {
      expect(corsHeaders(origin, loopbackOrigins)).toBeNull();
    }
  });

  test("a preflight lists methods and headers for two hours, and names only an allowed origin", () => {
    const headers = preflightHeaders("https://example.com", list);
    expect(headers["access-control-allow-origin"]).toBe("https://example.com");
    expect(headers["access-control-max-age"]).toBe("7200");
    expect(headers["access-control-allow-methods"]?.split(", ")).toEqual([
      "GET",
      "HEAD",
      "POST",
      "PUT",
      "DELETE",
      "OPTIONS",
    ]);
    for (const name of [
      "content-type",
      "authorization",
      "if-none-match",
      "stream-seq",
      "stream-ttl",
      "stream-expires-at",
      "stream-closed",
      "stream-expected-offset",
      "producer-id",
      "producer-epoch",
      "producer-seq",
      "forebay-ack",
      "forebay-batch-id",
    ]) {
      expect(headers["access-control-allow-headers"]?.split(", ")).toContain(name);
    }
    const foreign = preflightHeaders("https://evil.test", list);
    expect(foreign).not.toHaveProperty("access-control-allow-origin");
    expect(foreign["vary"]).toBe("Origin");
  });

  test("the configuration takes exact origins and the word loopback, never a wildcard", () => {
    expect(parseAllowedOrigins([])).toEqual({ loopback: false, exact: new Set() });
    expect(parseAllowedOrigins(["loopback", "https://a.test"])).toEqual({
      loopback: true,
      exact: new Set(["https://a.test"]),
    });
    for (const entry of [
      "*",
      "",
      "example.com",
      "https://example.com/",
      "https://a.test/path",
      "https://*.a.test",
      "HTTPS://a.test",
      "null",
    ]) {
      expect(codeOf(() => parseAllowedOrigins([entry]))).toBe("config_invalid");
    }
  });
});

test("P13 nosniff and CORP go on every response", () => {
  expect(securityHeaders).toEqual({
    "x-content-type-options": "nosniff",
    "cross-origin-resource-policy": "cross-origin",
  });
});
