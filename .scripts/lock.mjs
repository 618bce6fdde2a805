/**
 * One holder per tree and machine. The lock is a listening socket in Linux's abstract namespace:
 * the kernel takes it back when the holder ends, however it ends, so it can never be stale.
 */
import { createHash } from "node:crypto";
import { connect, createServer } from "node:net";
import { root } from "./run.mjs";

/** The name starts with NUL: abstract, no file. */
const address = `\0forebay-setup-${createHash("sha256").update(root).digest("hex").slice(0, 16)}`;

/** @returns {Promise<boolean>} false when another process holds the lock */
function tryLock() {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.on("error", () => {}).unref());
    server.on("error", (/** @type {NodeJS.ErrnoException} */ error) => {
      if (error.code === "EADDRINUSE") {
        resolve(false);
      } else {
        reject(error);
      }
    });
    server.listen(address, () => resolve(true)).unref();
  });
}

/** Resolves when the holder ends: its end of our connection closes. @returns {Promise<void>} */
function holderEnds() {
  return new Promise((resolve) => {
    const socket = connect(address);
    socket.on("error", () => {});
    socket.on("close", () => resolve());
    socket.resume();
  });
}

/** Takes the lock, after waiting for it, until this process ends. Outside Linux there is none. */
export async function lock() {
  if (process.platform !== "linux") {
    return;
  }
  if (await tryLock()) {
    return;
  }
  console.log("setup: waiting for another setup of this tree");
  do {
    await holderEnds();
  } while (!(await tryLock()));
}
