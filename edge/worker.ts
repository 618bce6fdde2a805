/** The Worker: its fetch handler and the outbox class, for wrangler.toml. */
import { clock } from "./ports/mod.ts";
import { createEdge, type Env } from "./routes/mod.ts";

export { Outbox } from "./outbox/mod.ts";

const edge: ExportedHandler<Env> = createEdge(clock);
export default edge;
