import type { IncomingHttpHeaders } from 'node:http';

const NOTHING = "'none'";

/**
 * Returns a Content-Security-Policy that permits what is named, and nothing else. No page may appear in a
 * frame, or change the address that its links begin with.
 */
export function policyOf(permitted: Readonly<Record<string, string>>): string {
  const all = {
    'default-src': NOTHING,
    ...permitted,
    'form-action': permitted['form-action'] ?? NOTHING,
    'object-src': NOTHING,
    'base-uri': NOTHING,
    'frame-ancestors': NOTHING,
  };
  return Object.entries(all)
    .map(([name, sources]) => `${name} ${sources}`)
    .join('; ');
}

const DEVICES = ['camera', 'geolocation', 'microphone', 'payment', 'usb'];

/** Returns a Permissions-Policy that lets a page itself use the devices that are named, and nothing else. */
export function permissionsOf(permitted: readonly string[]): string {
  return DEVICES.map((device) => `${device}=(${permitted.includes(device) ? 'self' : ''})`).join(', ');
}

/** The headers of every answer: it is kept in no cache unless it says so, and is nothing but what it says. */
const ALWAYS: readonly Header[] = [
  ['cache-control', 'no-store'],
  ['x-content-type-options', 'nosniff'],
];

/**
 * The headers of what a browser may show. Pages set a policy of their own, which permits what they load; all
 * other answers may load nothing. No other page holds a handle on ours or embeds what we answer, and none
 * learns an address from us. The programs of tills would only pay for these headers.
 */
const FOR_BROWSERS: readonly Header[] = [
  ['content-security-policy', policyOf({})],
  ['referrer-policy', 'no-referrer'],
  ['permissions-policy', permissionsOf([])],
  ['cross-origin-opener-policy', 'same-origin'],
  ['cross-origin-resource-policy', 'same-origin'],
];

/**
 * The headers that say nothing about a script, a style sheet or data that a page loads: it has the policies
 * of its page. They are a third of what a small one costs.
 */
export const FOR_PAGES: readonly string[] = [
  'content-security-policy',
  'referrer-policy',
  'permissions-policy',
  'cross-origin-opener-policy',
];

/** A year, and all names below that of the service: browsers then never ask it by http. */
const HTTPS_ONLY: Header = ['strict-transport-security', 'max-age=31536000; includeSubDomains'];

export type Header = readonly [name: string, value: string];

/** The headers of answers to browsers, to the scripts of their pages, and to the programs of tills. */
export type Headers = Readonly<Record<'browsers' | 'scripts' | 'tills', readonly Header[]>>;

/** Browsers say so of what a script asks for, which is never shown as a page. No script can say otherwise. */
export const isForScript = ({ 'sec-fetch-dest': destination }: IncomingHttpHeaders): boolean =>
  destination === 'empty';

/**
 * Returns the headers of answers.
 * @param publicUrl the address of the service for browsers; with https, they never use http
 */
export function headersFor(publicUrl: string | undefined): Headers {
  const tills = publicUrl?.startsWith('https:') ? [...ALWAYS, HTTPS_ONLY] : ALWAYS;
  const browsers = [...tills, ...FOR_BROWSERS];
  return { tills, browsers, scripts: browsers.filter(([name]) => !FOR_PAGES.includes(name)) };
}
