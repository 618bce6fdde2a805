import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { webcrypto } from "node:crypto";
import { createLocalJWKSet, type JSONWebKeySet } from "jose";

export interface Received {
  readonly body: string;
  readonly signature: string;
  readonly json: {
    readonly subscription_id: string;
    readonly wake_id: string;
    readonly generation: number;
    readonly callback_url: string;
    readonly callback_token: string;
    readonly streams: readonly { readonly path: string; readonly tail_offset: string }[];
  };
}

export interface Receiver {
  readonly url: string;
  readonly received: Received[];
  /** What the next webhooks are answered. */
  answer: { status: number; body: string };
  close(): void;
}

/** A real receiver of webhooks on this machine. */
export async function startReceiver(): Promise<Receiver> {
  const received: Received[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const body = Buffer.concat(chunks).toString();
      const signature = String(request.headers["webhook-signature"]);
      received.push({ body, signature, json: JSON.parse(body) });
      response.writeHead(receiver.answer.status, { "content-type": "application/json" });
      response.end(receiver.answer.body);
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  const receiver: Receiver = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook?secret=s3cr3t`,
    received,
    answer: { status: 200, body: "{}" },
    close: () => void server.close(),
  };
  return receiver;
}

/** Whether `Webhook-Signature` is by a key of the set, over the time and the body. */
export async function isSigned(
  { body, signature }: Pick<Received, "body" | "signature">,
  jwks: JSONWebKeySet,
): Promise<boolean> {
  const m = /^t=(\d+),kid=([^,]+),ed25519=([\w-]+)$/.exec(signature);
  const [, time = "", kid = "", signed = ""] = m ?? [];
  const key = await createLocalJWKSet(jwks)({ alg: "EdDSA", kid });
  const bytes = Buffer.from(`${time}.${body}`);
  return await webcrypto.subtle.verify(
    "Ed25519",
    key as CryptoKey,
    Buffer.from(signed, "base64url"),
    bytes,
  );
}
