import type { Server } from "node:net";

/** Listens on a free port, prints the URL for whoever started the server, and ends when told to. */
export function announce(server: Server): void {
  server.listen(0, "127.0.0.1", () => {
    const address = server.address();
    if (address !== null && typeof address === "object") {
      console.log(`http://127.0.0.1:${address.port}`);
    }
  });
  process.on("SIGTERM", () => process.exit(0));
}
