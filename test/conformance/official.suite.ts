import { runConformanceTests } from "@durable-streams/server-conformance-tests";

/** The official suite, unmodified, against the server whose address `runSide` hands over. */
const baseUrl = process.env["FOREBAY_TEST_URL"];
if (baseUrl === undefined) {
  throw new Error("FOREBAY_TEST_URL names no server; run `npm run conformance`");
}
runConformanceTests({ baseUrl, subscriptions: true });
