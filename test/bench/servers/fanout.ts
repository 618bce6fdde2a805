/** The bare fan-out: what a connection POSTs is written to all connections that sent a GET, and nothing is looked at. */
import { createServer, type Socket } from "node:net";
import { announce } from "./announce.ts";

const empty = "content-length: 0\r\n\r\n";
const readers = new Set<Socket>();
const server = createServer((socket) => {
  socket.setNoDelay(true);
  socket.on("data", (bytes) => {
    if (bytes[0] === "G".charCodeAt(0)) {
      readers.add(socket);
      socket.write("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n");
    } else if (bytes.includes("PUT ")) {
      socket.write(`HTTP/1.1 201 Created\r\n${empty}`);
    } else {
      const message = Buffer.from(
        `event: data\ndata: ${bytes.toString("latin1", bytes.indexOf("\r\n\r\n") + 4)}\n\n`,
      );
      for (const reader of readers) {
        reader.write(message);
      }
      socket.write(`HTTP/1.1 204 No Content\r\n\r\n`);
    }
  });
  socket.on("close", () => readers.delete(socket));
  socket.on("error", () => socket.destroy());
});
announce(server);
