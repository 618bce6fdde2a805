/**
 * A decimal integer from 0 to 2^53 − 1 without sign, leading zeros, point or exponent; undefined for anything
 * else. `Number()` and `parseInt` take `1e3`, `0x1`, ` 1` and `1abc`, which two servers would read differently.
 */
export function parseDecimal(text: string): number | undefined {
  if (!/^(?:0|[1-9][0-9]{0,15})$/.test(text)) {
    return undefined;
  }
  const value = Number(text);
  return Number.isSafeInteger(value) ? value : undefined;
}
