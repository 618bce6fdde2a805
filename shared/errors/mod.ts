/** Errors: one catalogue, one class, one HTTP form. */
export { catalogue, exitCodes, type ErrorCode } from "./catalogue.ts";
export { ForebayError, invariant, type ErrorExtras } from "./error.ts";
export { problemContentType, problemHeaders, problemJson, type Problem } from "./problem.ts";
