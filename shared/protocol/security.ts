/**
 * On every response, errors too: no browser guesses another type than the stream's (a stream holds what anyone
 * wrote), and pages that isolate themselves (COEP) may still load it.
 */
export const securityHeaders: Readonly<Record<string, string>> = {
  "x-content-type-options": "nosniff",
  "cross-origin-resource-policy": "cross-origin",
};
