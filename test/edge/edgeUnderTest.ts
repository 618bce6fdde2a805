import { env } from "cloudflare:workers";
import { createExecutionContext, waitOnExecutionContext } from "cloudflare:test";
import { clock } from "../../edge/ports/mod.ts";
import { createEdge, type Env } from "../../edge/routes/mod.ts";

/** A Worker with state and bindings of its own, called in the test's context; all of its `waitUntil` work is done at the answer. */
export class EdgeUnderTest {
  readonly #handler = createEdge(clock);
  readonly #env: Env;

  constructor(bindings: Partial<Env> = {}) {
    this.#env = { ...env, REGION: "test", OUTBOX_PARTITIONS: "4", ...bindings };
  }

  async fetch(path: string, init: RequestInit = {}): Promise<Response> {
    const context = createExecutionContext();
    const response = await this.#handler.fetch(
      new Request(`http://edge.test${path}`, init),
      this.#env,
      context,
    );
    await waitOnExecutionContext(context);
    return response;
  }

  post(path: string, body: BodyInit, headers: Record<string, string> = {}): Promise<Response> {
    return this.fetch(path, { method: "POST", body, headers });
  }
}

export const text = { "content-type": "text/plain" };
export const json = { "content-type": "application/json" };
