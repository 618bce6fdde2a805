import { isIP } from "node:net";
import { resolve } from "node:path";
import { ForebayError } from "../../shared/errors/mod.ts";
import { sourceText } from "./resolve.ts";
import type { OriginConfig, Resolved } from "./types.ts";

/**
 * What the origin is started with, after the checks that need more than one setting.
 *
 * @throws ForebayError `key_required` for a public address without a key; `config_invalid` for values that
 * contradict each other
 */
export function originConfig(resolved: Resolved, cwd: string): OriginConfig {
  const { values, sources } = resolved;
  const addresses = values.edge ? (["host", "edgeHost"] as const) : (["host"] as const);
  for (const name of addresses) {
    if (values.key === null && !isLoopback(values[name])) {
      throw new ForebayError(
        "key_required",
        `${name} = ${JSON.stringify(values[name])} (from ${sourceText(sources[name])}) is not a loopback address, and no key is set`,
      );
    }
  }
  if (values.edge && values.port !== 0 && values.port === values.edgePort) {
    throw new ForebayError(
      "config_invalid",
      `port (from ${sourceText(sources.port)}) and edgePort (from ${sourceText(sources.edgePort)}) are both ${values.port}`,
    );
  }
  if (values.segmentBytes * 2 > values.journalBudgetBytes) {
    throw new ForebayError(
      "config_invalid",
      `journalBudgetBytes = ${values.journalBudgetBytes} (from ${sourceText(sources.journalBudgetBytes)}) does not hold two segments of segmentBytes = ${values.segmentBytes} (from ${sourceText(sources.segmentBytes)})`,
    );
  }
  const { host, port, key, allowedOrigins, longPollMs, sseLifetimeMs } = values;
  const { publicUrl, webhookPrivateHosts } = values;
  const { storage, journalDamage, journalBudgetBytes, segmentBytes } = values;
  const { storeBytesMax, arenaBytes, checkpointAgeMs, maxConnections, logLevel } = values;
  return {
    host,
    port,
    dataDir: resolve(cwd, values.data),
    key,
    allowedOrigins,
    publicUrl,
    webhookPrivateHosts,
    longPollMs,
    sseLifetimeMs,
    storage,
    journalDamage,
    journalBudgetBytes,
    segmentBytes,
    storeBytesMax,
    arenaBytes,
    checkpointAgeMs,
    maxConnections,
    logLevel,
  };
}

/** 127.0.0.0/8, ::1 and localhost. */
export function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || (isIP(host) === 4 && host.startsWith("127."));
}
