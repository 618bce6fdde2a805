/** The bare echo: as little server as a connection can have, to show that the client is not the limit. */
import { createServer } from "node:net";
import { announce } from "./announce.ts";

const answer = Buffer.from("HTTP/1.1 204 No Content\r\n\r\n");
const server = createServer((socket) => {
  socket.setNoDelay(true);
  socket.on("data", () => socket.write(answer));
  socket.on("error", () => socket.destroy());
});
announce(server);
