/** The bare echo: as little server as a connection can have, to show that the client is not the limit. */
import { createServer } from "node:net";

const answer = Buffer.from("HTTP/1.1 204 No Content\r\n\r\n");
const server = createServer((socket) => {
  socket.setNoDelay(true);
  socket.on("data", () => socket.write(answer));
  socket.on("error", () => socket.destroy());
});
server.listen(0, "127.0.0.1", () => {
  const address = server.address();
  if (address !== null && typeof address === "object") {
    console.log(`http://127.0.0.1:${address.port}`);
  }
});
process.on("SIGTERM", () => process.exit(0));
