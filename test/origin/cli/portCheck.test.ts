import { once } from "node:events";
import { createServer } from "node:net";
import { expect, test } from "vitest";
import { checkFree } from "../../../origin/cli/portCheck.ts";

test("a free port passes and is free again afterwards; a taken one is named", async () => {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const port = address !== null && typeof address === "object" ? address.port : 0;
  await expect(checkFree("edge", "127.0.0.1", port)).rejects.toMatchObject({
    code: "port_taken",
    message: `port ${port} of 127.0.0.1, the edge's, is in use`,
  });
  server.close();
  await once(server, "close");
  await checkFree("edge", "127.0.0.1", port);
  await checkFree("edge", "127.0.0.1", port);
  await checkFree("edge", "127.0.0.1", 0);
});

test("an address of another machine", async () => {
  await expect(checkFree("edge", "192.0.2.1", 0)).rejects.toMatchObject({ code: "config_invalid" });
});
