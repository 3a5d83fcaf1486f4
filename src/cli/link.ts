import type { Config } from '../config.ts';
import { isLoopback } from '../network.ts';

/** Returns an address that clients can use. One that means "every address" cannot be used. */
export function addressToCall(host: string, port: number): string {
  const called = { '0.0.0.0': '127.0.0.1', '::': '::1' }[host] ?? host;
  return `http://${called.includes(':') ? `[${called}]` : called}:${port}`;
}

/**
 * Returns the address of the service for browsers. A browser on this machine uses the name localhost, since
 * passkeys are bound to a name.
 */
export function baseUrlOf({ publicUrl, host, port }: Pick<Config, 'publicUrl' | 'host' | 'port'>): string {
  const isHere = isLoopback(host) || /^(0\.0\.0\.0|::)$/.test(host);
  return publicUrl ?? (isHere ? `http://localhost:${port}` : addressToCall(host, port));
}
