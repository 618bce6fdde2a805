import { fieldLines } from "./wire.ts";

/** Header fields that many answers have in common: checked and put into text once. */
export class HeaderBlock {
  /** name, value, name, value … */
  readonly flat: readonly string[];
  /** Each with its line end. */
  readonly text: string;

  constructor(flat: readonly string[]) {
    this.flat = flat;
    this.text = fieldLines(flat);
  }
}
