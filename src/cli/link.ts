import type { Config } from '../config.ts';

/** An address that can be called: one that means "every address" cannot. */
export function addressToCall(host: string, port: number): string {
  const called = { '0.0.0.0': '127.0.0.1', '::': '::1' }[host] ?? host;
  return `http://${called.includes(':') ? `[${called}]` : called}:${port}`;
}

/**
 * A link into the console or the portal. The token stands in the fragment: browsers do not send it, so that no log of a proxy holds it.
 * @param port that the service listens at, where that is not the setting
 */
export function linkTo(
  { publicUrl, host, port: configured }: Config,
  place: 'console' | 'portal',
  page: 'enroll' | 'sign-in',
  token: string,
  port = configured,
): string {
  // Browsers keep secure cookies of localhost, and passkeys know it by this name only.
  const isLoopback = /^(127\.0\.0\.1|0\.0\.0\.0|::1?|localhost)$/.test(host);
  const base = publicUrl ?? (isLoopback ? `http://localhost:${port}` : addressToCall(host, port));
  return `${base}/${place}/${page}#${token}`;
}
