/** The origin's real clock, randomness and end of turn; simulated ones live in `test/`. */
export { clock } from "./clock.ts";
export { pause } from "./pause.ts";
export { random } from "./random.ts";
export { endOfTurn } from "./turn.ts";
