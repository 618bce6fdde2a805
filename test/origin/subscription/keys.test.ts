import { calculateJwkThumbprint, importJWK } from "jose";
import { webcrypto } from "node:crypto";
import { expect, test } from "vitest";
import { Keys } from "../../../origin/subscription/keys.ts";
import { seededRandom } from "../seededRandom.ts";

const random = seededRandom(5);
const [seed, tokenKey] = [random.bytes(32), random.bytes(32)];
const keys = new Keys(seed, tokenKey);

test("the public key is a JWK of RFC 8037 whose id is its thumbprint", async () => {
  expect(keys.jwk).toMatchObject({ kty: "OKP", crv: "Ed25519", use: "sig", alg: "EdDSA" });
  expect(keys.jwk.kid).toBe(`ds_${await calculateJwkThumbprint({ ...keys.jwk })}`);
});

test("the key is the seed's: RFC 8032's first test vector", () => {
  const vector = Buffer.from(
    "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
    "hex",
  );
  const { x } = new Keys(vector, tokenKey).jwk;
  expect(Buffer.from(x, "base64url").toString("hex")).toBe(
    "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
  );
});

test("a signature is over the time and the body, byte for byte", async () => {
  const body = '{"a":"ü"}';
  const signature = keys.signature(body, 1_700_000_000);
  const m = /^t=(\d+),kid=([^,]+),ed25519=([\w-]{86})$/.exec(signature);
  expect([m?.[1], m?.[2]]).toEqual(["1700000000", keys.jwk.kid]);
  const key = (await importJWK({ ...keys.jwk }, "EdDSA")) as CryptoKey;
  const holds = (text: string): Promise<boolean> =>
    webcrypto.subtle.verify(
      "Ed25519",
      key,
      Buffer.from(m?.[3] ?? "", "base64url"),
      Buffer.from(text),
    );
  expect(await holds(`1700000000.${body}`)).toBe(true);
  expect(await holds(`1700000001.${body}`)).toBe(false);
  expect(await holds(`1700000000.${body} `)).toBe(false);
});

test("a token is of one subscription and one generation, and cannot be made up", () => {
  const token = keys.token(3, 17);
  expect(keys.generationOf(token, 3)).toBe(17);
  expect(keys.generationOf(token, 4)).toBeNull();
  expect(keys.generationOf(token.replace("17.", "18."), 3)).toBeNull();
  expect(new Keys(seed, random.bytes(32)).generationOf(token, 3)).toBeNull();
  const last = token.at(-1) === "A" ? "B" : "A";
  for (const made of [
    "",
    ".",
    "17.",
    "17",
    `${token}x`,
    `x${token}`,
    `17.${"A".repeat(43)}`,
    `${token.slice(0, -2)}${last}A`,
  ]) {
    expect(keys.generationOf(made, 3), made).toBeNull();
  }
});
