/**
 * The headers of every answer, for browsers. Pages set a policy of their own, which permits what they load;
 * all other answers may load nothing and appear in no frame. No answer is kept in a cache unless it says
 * so.
 */
const ALWAYS: readonly Header[] = [
  ['cache-control', 'no-store'],
  ['content-security-policy', "default-src 'none'; frame-ancestors 'none'"],
  ['x-content-type-options', 'nosniff'],
];

/** A year, and all names below that of the service: browsers then never ask it by http. */
const HTTPS_ONLY: Header = ['strict-transport-security', 'max-age=31536000; includeSubDomains'];

export type Header = readonly [name: string, value: string];

/**
 * Returns the headers of every answer.
 * @param publicUrl the address of the service for browsers; with https, they never use http
 */
export function headersFor(publicUrl: string | undefined): readonly Header[] {
  return publicUrl?.startsWith('https:') ? [...ALWAYS, HTTPS_ONLY] : ALWAYS;
}

/** Returns a Content-Security-Policy from its directives. */
export function policyOf(directives: Readonly<Record<string, string>>): string {
  return Object.entries(directives)
    .map(([name, sources]) => `${name} ${sources}`)
    .join('; ');
}
