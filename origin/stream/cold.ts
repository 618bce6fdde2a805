import { Cold } from "../store/mod.ts";
import type { Loading } from "./types.ts";

/** What `answer` says, or what has to be loaded before it can. */
export function unlessCold<T>(answer: () => T): T | Loading {
  try {
    return answer();
  } catch (error) {
    if (error instanceof Cold) {
      return { loading: error.load() };
    }
    throw error;
  }
}
