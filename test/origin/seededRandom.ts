import type { Random } from "../../shared/ports/mod.ts";

/** The same seed gives the same numbers (splitmix32; Steele, Lea and Flood, 2014). */
export function seededRandom(seed: number): Random {
  let state = seed | 0;
  const next32 = (): number => {
    state = (state + 0x9e3779b9) | 0;
    let z = state;
    z = Math.imul(z ^ (z >>> 16), 0x21f0aaad);
    z = Math.imul(z ^ (z >>> 15), 0x735a2d97);
    return (z ^ (z >>> 15)) >>> 0;
  };
  return {
    next: () => next32() / 2 ** 32,
    bytes(n) {
      const bytes = new Uint8Array(n);
      for (let i = 0; i < n; i++) {
        bytes[i] = next32();
      }
      return bytes;
    },
  };
}
