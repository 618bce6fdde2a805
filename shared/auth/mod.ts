/** The one secret of an installation: how a request presents it and how it is compared. */
export { bearerKey, keyMatches, requestKey } from "./key.ts";
