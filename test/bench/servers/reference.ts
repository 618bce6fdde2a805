/** The npm reference server: in memory, or file-backed in the directory given as the first argument. */
import { DurableStreamTestServer } from "@durable-streams/server";

const dataDir = process.argv[2];
const server = new DurableStreamTestServer({
  port: 0,
  ...(dataDir === undefined ? {} : { dataDir }),
});
console.log(await server.start());
process.on("SIGTERM", () => process.exit(0));
