import { readFile } from "node:fs/promises";
import { createServer } from "node:http";

const types: Record<string, string> = { "/": "text/html", "/page.js": "text/javascript" };
const files: Record<string, string> = { "/": "index.html", "/page.js": "page.js" };

/** Serves the page from an origin of its own, so that everything it sends is cross-origin, as on a real site. */
export async function servePage(): Promise<{ readonly url: string; stop(): Promise<void> }> {
  const server = createServer((request, response) => {
    const path = new URL(request.url ?? "/", "http://page").pathname;
    const file = files[path];
    if (file === undefined) {
      response.writeHead(404).end();
      return;
    }
    void readFile(new URL(file, import.meta.url)).then((bytes) => {
      response.writeHead(200, { "content-type": types[path] }).end(bytes);
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  const address = server.address();
  if (address === null || typeof address === "string") {
    throw new Error("the page server has no port");
  }
  return {
    url: `http://127.0.0.1:${address.port}/`,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
