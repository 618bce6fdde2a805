/** CRC-32C for both sides: frames, journal entries, runs. */
export { crc32c } from "./crc32c.ts";
