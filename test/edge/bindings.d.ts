import type * as worker from "../../edge/worker.ts";
import type { Env as Bindings } from "../../edge/routes/env.ts";

/** Tells `env` and `exports` of "cloudflare:workers" what wrangler.toml binds. */
declare global {
  namespace Cloudflare {
    interface Env extends Bindings {}
    interface GlobalProps {
      mainModule: typeof worker;
      durableNamespaces: "Outbox";
    }
  }
}
