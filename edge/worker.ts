/** The Worker: its fetch handler and the outbox class, for wrangler.toml. */
import { clock } from "./ports/mod.ts";
import { createEdge, type EdgeHandler } from "./routes/mod.ts";

export { Outbox } from "./outbox/mod.ts";

const edge: EdgeHandler = createEdge(clock);
export default edge;
