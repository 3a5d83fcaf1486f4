import { BlockList, isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

/** Networks as text, IPv4 and IPv6: `192.0.2.0/24`, `2001:db8::/32`, or a single address. */

/** Reads a network. @returns it with its prefix length, or undefined if the text is not a network */
export function readNetwork(text: string): string | undefined {
  const [, address = '', prefix] = /^([0-9A-Fa-f.:]+)(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  const bits = { 0: 0, 4: 32, 6: 128 }[isIP(address)] ?? 0;
  // An IPv4 address in IPv6 form is compared as IPv4, so it would never match such a network.
  if (bits === 0 || /^::ffff:/i.test(address) || Number(prefix ?? bits) > bits) return undefined;
  return `${address.toLowerCase()}/${Number(prefix ?? bits)}`;
}

/** Returns a test of whether an address is in one of the networks. Text that is not an address is in none. */
export function containing(networks: readonly string[]): (address: string | undefined) => boolean {
  const list = new BlockList();
  for (const network of networks) {
    const [address = '', prefix] = network.split('/');
    list.addSubnet(address, Number(prefix), isIP(address) === 6 ? 'ipv6' : 'ipv4');
  }
  return (text) => {
    const address = text?.replace(/^::ffff:(?=\d+\.)/i, '').replace(/%.*/s, '') ?? '';
    const version = isIP(address);
    return version !== 0 && list.check(address, version === 6 ? 'ipv6' : 'ipv4');
  };
}

/**
 * Returns the network of an address, as limits count it. A customer with IPv6 has a network of 64 bits, so
 * all its addresses count as one.
 */
export function networkOf(address: string): string {
  if (!ipaddr.isValid(address)) return address;
  const parsed = ipaddr.process(address);
  return parsed instanceof ipaddr.IPv6 ? parsed.parts.slice(0, 4).join(':') : parsed.toString();
}

/** Whether a host can only be reached from this machine. */
export function isLoopback(host: string): boolean {
  return /^(127\.\d+\.\d+\.\d+|::1|localhost)$/.test(host);
}

/** Returns an address that clients can use. One that means "every address" cannot be used. */
export function addressToCall(host: string, port: number): string {
  const called = { '0.0.0.0': '127.0.0.1', '::': '::1' }[host] ?? host;
  return `http://${called.includes(':') ? `[${called}]` : called}:${port}`;
}

type Listening = { readonly publicUrl: string | undefined; readonly host: string; readonly port: number };

/**
 * Returns the address of the service for browsers. A browser on this machine uses the name localhost, since
 * passkeys are bound to a name.
 */
export function baseUrlOf({ publicUrl, host, port }: Listening): string {
  const isHere = isLoopback(host) || /^(0\.0\.0\.0|::)$/.test(host);
  return publicUrl ?? (isHere ? `http://localhost:${port}` : addressToCall(host, port));
}
