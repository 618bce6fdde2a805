import { once } from "node:events";
import { createServer } from "node:net";
import { ForebayError } from "../../shared/errors/mod.ts";

/**
 * Binds the address for a moment, before anything is touched: a start that cannot listen leaves the data as it is (F18),
 * and the edge's runtime would say less clearly, and later, that it cannot.
 *
 * @param side whose address it is
 * @throws ForebayError `port_taken`, or `config_invalid` for an address that is not this machine's
 */
export async function checkFree(
  side: "origin" | "edge",
  host: string,
  port: number,
): Promise<void> {
  const server = createServer();
  try {
    server.listen(port, host);
    await once(server, "listening");
  } catch (cause) {
    const code = cause instanceof Error && "code" in cause ? String(cause.code) : "";
    if (code === "EADDRINUSE" || code === "EACCES") {
      const why = code === "EACCES" ? "may not be bound by this user" : "is in use";
      throw new ForebayError("port_taken", `port ${port} of ${host}, the ${side}'s, ${why}`, {
        cause,
      });
    }
    throw new ForebayError(
      "config_invalid",
      `${side === "edge" ? "edgeHost" : "host"} ${host} cannot be bound (${code})`,
      {
        cause,
      },
    );
  }
  server.close();
  await once(server, "close");
}
