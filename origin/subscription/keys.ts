import {
  createHash,
  createHmac,
  createPrivateKey,
  createPublicKey,
  sign,
  timingSafeEqual,
  type KeyObject,
} from "node:crypto";
import { invariant } from "../../shared/errors/mod.ts";

/** A public key of the JWKS (RFC 8037). */
export interface PublicJwk {
  readonly kty: "OKP";
  readonly crv: "Ed25519";
  readonly x: string;
  readonly kid: string;
  readonly use: "sig";
  readonly alg: "EdDSA";
}

/** PKCS #8 of an Ed25519 key (RFC 8410 §7) up to its 32 bytes of seed. */
const pkcs8Head = Buffer.from("302e020100300506032b657004220420", "hex");

/** The two secrets of one origin: what signs webhooks, and what makes tokens unguessable. */
export class Keys {
  readonly jwk: PublicJwk;
  /** 32 bytes: what the private key is made of. */
  readonly signingSeed: Uint8Array;
  /** 32 bytes. */
  readonly tokenKey: Uint8Array;
  readonly #private: KeyObject;

  constructor(signingSeed: Uint8Array, tokenKey: Uint8Array) {
    const der = Buffer.concat([pkcs8Head, signingSeed]);
    this.#private = createPrivateKey({ key: der, format: "der", type: "pkcs8" });
    this.signingSeed = signingSeed;
    this.tokenKey = tokenKey;
    const { x } = createPublicKey(this.#private).export({ format: "jwk" });
    invariant(x !== undefined, "an Ed25519 key has an x");
    this.jwk = { kty: "OKP", crv: "Ed25519", x, kid: keyId(x), use: "sig", alg: "EdDSA" };
  }

  /** The field `Webhook-Signature`: over the seconds since 1970, a dot, and the body as it is sent. */
  signature(body: string, seconds: number): string {
    const signed = sign(null, Buffer.from(`${seconds}.${body}`), this.#private);
    return `t=${seconds},kid=${this.jwk.kid},ed25519=${signed.toString("base64url")}`;
  }

  /** The bearer token of one generation of one subscription: `<generation>.<HMAC-SHA-256>`. */
  token(subscription: number, generation: number): string {
    return `${generation}.${this.#mac(subscription, generation).toString("base64url")}`;
  }

  /** The generation a token was made for, or null when it was not made here for this subscription. */
  generationOf(token: string, subscription: number): number | null {
    const m = /^(\d{1,15})\.([\w-]{43})$/.exec(token);
    if (m === null) {
      return null;
    }
    const generation = Number(m[1]);
    const given = Buffer.from(m[2] ?? "", "base64url");
    return timingSafeEqual(given, this.#mac(subscription, generation)) ? generation : null;
  }

  #mac(subscription: number, generation: number): Buffer {
    return createHmac("sha256", this.tokenKey).update(`${subscription}.${generation}`).digest();
  }
}

/** `ds_` and the key's thumbprint (RFC 7638). */
function keyId(x: string): string {
  const canonical = JSON.stringify({ crv: "Ed25519", kty: "OKP", x });
  return `ds_${createHash("sha256").update(canonical).digest("base64url")}`;
}
