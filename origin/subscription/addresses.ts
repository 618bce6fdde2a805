import { BlockList, isIP } from "node:net";

/**
 * IPv4 blocks that are no unicast addresses of the public internet (IANA IPv4 Special-Purpose Address Registry, with
 * multicast and class E). Anycast relays and benchmarks are among them: no webhook lives there.
 */
const notPublic4: readonly (readonly [string, number])[] = [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.31.196.0", 24],
  ["192.52.193.0", 24],
  ["192.88.99.0", 24],
  ["192.168.0.0", 16],
  ["192.175.48.0", 24],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 3],
];

/**
 * What of the one global unicast block of IPv6, 2000::/3, is special: protocol assignments (Teredo among them),
 * documentation, 6to4, and the AS 112 prefix. Everything outside 2000::/3 is not public: mapped and translated IPv4,
 * unique local, link-local, multicast.
 */
const notPublic6: readonly (readonly [string, number])[] = [
  ["2001::", 23],
  ["2001:db8::", 32],
  ["2002::", 16],
  ["2620:4f:8000::", 48],
  ["3fff::", 20],
];

const special = new BlockList();
for (const [address, bits] of notPublic4) {
  special.addSubnet(address, bits, "ipv4");
}
for (const [address, bits] of notPublic6) {
  special.addSubnet(address, bits, "ipv6");
}
const global6 = new BlockList();
global6.addSubnet("2000::", 3, "ipv6");
const loopback = new BlockList();
loopback.addSubnet("127.0.0.0", 8, "ipv4");
loopback.addAddress("::1", "ipv6");

/** Which addresses a webhook may go to. */
export class AddressPolicy {
  readonly #loopback: boolean;
  readonly #privateHosts: ReadonlySet<string>;

  /**
   * @param allowLoopback this machine's own addresses too
   * @param privateHosts host names or addresses, as webhook URLs spell them, that may be anywhere
   */
  constructor(allowLoopback: boolean, privateHosts: readonly string[]) {
    this.#loopback = allowLoopback;
    this.#privateHosts = new Set(privateHosts.map((host) => host.toLowerCase()));
  }

  /** Whether the configuration vouches for this host, wherever it is. */
  vouchesFor(host: string): boolean {
    return this.#privateHosts.has(host.toLowerCase());
  }

  /** Whether `host` is this machine by its name or address alone, and may be called. */
  isOwnMachine(host: string): boolean {
    const named = host === "localhost" || host.endsWith(".localhost");
    return this.#loopback && (named || isLoopback(host));
  }

  /** Whether the address that `host` was resolved to, or is, may be connected to. */
  allows(host: string, address: string): boolean {
    return isPublic(address) || (this.#loopback && isLoopback(address)) || this.vouchesFor(host);
  }
}

function isLoopback(address: string): boolean {
  const family = familyOf(address);
  return family !== null && loopback.check(address, family);
}

function isPublic(address: string): boolean {
  const family = familyOf(address);
  if (family === null || special.check(address, family)) {
    return false;
  }
  return family === "ipv4" || global6.check(address, family);
}

function familyOf(address: string): "ipv4" | "ipv6" | null {
  const version = isIP(address);
  // A zone ("fe80::1%eth0") is link-local, and BlockList knows none.
  if (version === 0 || address.includes("%")) {
    return null;
  }
  return version === 4 ? "ipv4" : "ipv6";
}
