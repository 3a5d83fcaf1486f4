import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { DuplicateKey, readJson, TooDeep } from '../json.ts';
import { type FieldError, Refusal, type RefusalCode } from '../refusal.ts';

/** Checks the form of a request, as HTTP and as JSON, before its content is used. */

/** The largest body that is read. The largest valid request is far below a kilobyte. */
export const BODY_LIMIT_BYTES = 64 * 1024;

/** A request that is invalid at transport level. Its HTTP status is the same in every dialect. */
export class TransportRefusal extends Refusal {
  readonly httpStatus: number;
  /** The methods of the path, for a wrong method (405). */
  readonly allow: string | undefined;

  constructor(
    code: RefusalCode,
    httpStatus: number,
    details: { readonly allow?: string; readonly errors?: readonly FieldError[] } = {},
  ) {
    super(code, details);
    this.httpStatus = httpStatus;
    this.allow = details.allow;
  }
}

function refuseField(code: RefusalCode, httpStatus: number, field: string, rule: string, message: string) {
  return new TransportRefusal(code, httpStatus, { errors: [{ field, rule, message }] });
}

/** HTTP 415: the body has none of the media types that the endpoint accepts. */
export const wrongMediaType = (mediaTypes: readonly string[]) =>
  refuseField('98', 415, 'Content-Type', 'media-type', `must be ${mediaTypes.join(' or ')}, in UTF-8`);

/** A host and a port (RFC 9110, 7.2). */
const HOST = /^(?:\[[\w.:~%!$&'()*+,;=-]+\]|[\w.~%!$&'()*+,;=-]*)(?::\d*)?$/;

/** Headers that a proxy may read differently than the service. */
const ONCE = ['Host', 'Authorization', 'Content-Type'] as const;

/**
 * HTTP 400: a request of HTTP/1.1 without `Host`, one with a malformed `Host` or with two headers that may
 * appear once (RFC 9112, 3.2; RFC 9110, 5.3), or one of an older version than 1.0. HTTP/1.0 requires no
 * `Host`.
 */
export function checkFrame({ httpVersion, headers, rawHeaders }: IncomingMessage) {
  if (httpVersion !== '1.1' && httpVersion !== '1.0') return new TransportRefusal('98', 400);
  if (headers.host === undefined && httpVersion === '1.1')
    return refuseField('98', 400, 'Host', 'required', 'is required in HTTP/1.1');
  for (const once of ONCE) {
    let found = 0;
    for (let at = 0; at < rawHeaders.length; at += 2) {
      const name = rawHeaders[at];
      if (name?.length === once.length && name.toLowerCase() === once.toLowerCase()) found++;
    }
    if (found > 1) return refuseField('98', 400, once, 'unique', 'must appear once');
  }
  if (headers.host !== undefined && !HOST.test(headers.host))
    return refuseField('98', 400, 'Host', 'pattern', 'must be a host, with or without a port');
  return undefined;
}

/** HTTP 413. */
export const bodyTooLarge = (maxBytes = BODY_LIMIT_BYTES) =>
  refuseField('98', 413, 'body', 'maxLength', `must be at most ${maxBytes / 1024} KiB`);

/** HTTP 400: the body is empty, not UTF-8 or not JSON. */
export const notJson = () => refuseField('30', 400, 'body', 'json', 'must be JSON in UTF-8');

/**
 * Checks the head of a request with a body, before the body is read.
 * @param mediaTypes that the endpoint accepts, in lower case
 * @param maxBytes the largest body that it accepts
 * @returns a refusal `98` (415 or 413), or undefined
 */
export function checkHead(
  headers: IncomingHttpHeaders,
  mediaTypes: readonly string[],
  maxBytes = BODY_LIMIT_BYTES,
): TransportRefusal | undefined {
  const { 'content-type': type, 'content-length': length, 'content-encoding': encoding } = headers;
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    return refuseField('98', 415, 'Content-Encoding', 'identity', 'is not supported: send the body as it is');
  }
  // A request without a body needs no media type. It is refused later, because it is not JSON.
  const isEmpty = headers['transfer-encoding'] === undefined && (length === undefined || length === '0');
  if (type === undefined ? !isEmpty : !isOneOf(mediaTypes, type)) return wrongMediaType(mediaTypes);
  return Number(length) > maxBytes ? bodyTooLarge(maxBytes) : undefined;
}

/**
 * Whether the list contains a media type. The only parameter that matters is the charset, which must be
 * UTF-8.
 */
function isOneOf(mediaTypes: readonly string[], type: string): boolean {
  const [name = '', ...parameters] = type.toLowerCase().split(';');
  if (!mediaTypes.includes(name.trim())) return false;
  return parameters.every((parameter) => {
    const [key = '', value = ''] = parameter.split('=');
    return key.trim() !== 'charset' || /^"?utf-?8"?$/.test(value.trim());
  });
}

/** Returns the path of a request target, without origin and query. */
function pathOf(url: string): string {
  return url.replace(/^[a-z]+:\/\/[^/?#]*/i, '').replace(/[?#].*$/s, '');
}

/**
 * Returns the refusal of a request that matches no route: an unknown path (404), or a method that the path
 * does not have (405).
 * @param routes every route of the server, with `:name` for a parameter
 */
export function refuseUnrouted(
  url: string,
  routes: readonly { readonly method: string; readonly url: string }[],
): TransportRefusal {
  const parts = pathOf(url).split('/');
  const isMatch = (route: string) => {
    const wanted = route.split('/');
    if (wanted.length !== parts.length) return false;
    return wanted.every((part, at) => part === parts[at] || (part[0] === ':' && parts[at]));
  };
  const methods = routes.filter((route) => isMatch(route.url)).map(({ method }) => method);
  return methods.length > 0
    ? new TransportRefusal('98', 405, { allow: methods.sort().join(', ') })
    : new TransportRefusal('98', 404);
}

/** Refuses invalid UTF-8 and removes a byte order mark. */
const decoder = new TextDecoder('utf-8', { fatal: true });

/**
 * Parses the body of a request (src/json.ts).
 * @param body the bytes as received, undefined if there were none
 * @throws TransportRefusal `30` (HTTP 400) for an empty body, invalid UTF-8, text that is not JSON, an object
 *   with a duplicate key, and objects and lists nested too deep
 */
export function parseJson(body: Uint8Array | undefined): unknown {
  try {
    return readJson(decoder.decode(body));
  } catch (error) {
    if (error instanceof DuplicateKey)
      throw refuseField('30', 400, 'body', 'unique-keys', 'must not contain a key twice in one object');
    if (error instanceof TooDeep)
      throw refuseField(
        '30',
        400,
        'body',
        'maxDepth',
        'must not nest objects and lists more than 32 levels deep',
      );
    throw notJson();
  }
}

/**
 * How to compress an answer: by the offered coding that the request prefers (RFC 9110, 12.5.3), among equals
 * by the first. It accepts a coding by its name or by `*`. Undefined if it accepts none, prefers the plain
 * answer, or says nothing.
 */
export function codingOf<Coding extends string>(
  acceptEncoding: string | undefined,
  offered: readonly Coding[],
): Coding | undefined {
  const weights = new Map<string, number>();
  for (const each of (acceptEncoding ?? '').toLowerCase().split(',')) {
    const [, name = '', weight = '1'] = /^\s*([^\s;]+)\s*(?:;\s*q=([^\s]*)\s*)?$/.exec(each) ?? [];
    // A malformed weight expresses no preference for the coding.
    const isWeight = /^(0(\.\d{0,3})?|1(\.0{0,3})?)$/.test(weight);
    weights.set(name === 'x-gzip' ? 'gzip' : name, isWeight ? Number(weight) : 0);
  }
  const weightOf = (coding: Coding) => weights.get(coding) ?? weights.get('*') ?? 0;
  const weight = Math.max(...offered.map(weightOf));
  if (weight === 0 || weight < (weights.get('identity') ?? 0)) return undefined;
  return offered.find((coding) => weightOf(coding) === weight);
}

/** Whether to compress an answer by gzip. */
export const prefersGzip = (acceptEncoding: string | undefined): boolean =>
  codingOf(acceptEncoding, ['gzip']) !== undefined;

/** Whether a request asks for a page, as browsers do, by text/html in its Accept header. */
export function prefersHtml(accept: string | undefined): boolean {
  return (accept ?? '').split(',').some((each) => /^\s*text\/html\s*(;|$)/i.test(each));
}
