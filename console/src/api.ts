/** The client of the documented API: the console speaks to /operator/v1, the portal to /portal/v1. */

export type Door = 'operator' | 'portal';

/** Whether the page was opened by somebody who is about to sign in. */
export const beginsOutside = /\/(sign-in|enroll)$/.test(location.pathname);

/** A problem document (RFC 9457), or its substitute when no answer came. */
export class ApiProblem extends Error {
  readonly status: number;
  readonly code: string;
  readonly requestId: string | undefined;
  readonly fields: readonly Fault[];
  /** The present effect of a proposal, if it differs from the confirmed one. */
  readonly effect: unknown;
  /** What the proposal says now, if its effect has changed. */
  readonly statement: unknown;
  /** The roles that permit the operation; one of them is enough. */
  readonly roles: readonly string[] | undefined;

  constructor(status: number, body: Partial<ProblemBody>) {
    super(body.detail ?? body.title ?? 'The service did not answer.');
    this.status = status;
    this.code = body.code ?? 'no-answer';
    this.requestId = body.requestId;
    this.fields = body.errors ?? [];
    this.effect = body.effect;
    this.statement = body.statement;
    this.roles = body.roles;
  }
}

/** A field that is wrong: the rule that it breaks, and a sentence in English. */
export type Fault = {
  readonly field: string;
  readonly rule: string;
  readonly message: string;
  /** What the message says, as values. */
  readonly facts?: Readonly<Record<string, unknown>>;
};

type ProblemBody = {
  title: string;
  detail: string;
  code: string;
  requestId: string;
  errors: Fault[];
  effect: unknown;
  statement: unknown;
  roles: string[];
};

/** The sum of all pages of a list that is behind a figure. */
export type Total = { readonly rows: number; readonly amount: number; readonly currency: string };
export type Page<Item> = {
  readonly items: readonly Item[];
  readonly nextCursor: string | null;
  readonly total?: Total | null;
};
export type Query = Readonly<Record<string, string | number | boolean | undefined>>;

/** A file, instead of a JSON document. */
export type Download = { readonly name: string; readonly content: Blob };

type Sent = { readonly body?: unknown; readonly idempotencyKey?: string; readonly signal?: AbortSignal };

/** After this time without a key or a click, the page reads by itself, which does not keep the session. */
const UNTOUCHED_MS = 60_000;

let touchedAt = Date.now();
for (const kind of ['keydown', 'pointerdown', 'wheel'])
  addEventListener(kind, () => (touchedAt = Date.now()), { capture: true, passive: true });

let door: Door = 'operator';

let onSignedOut = () => {};
let onFailure = () => {};

/**
 * @param signedOut is called when an answer says that the session has ended
 * @param failed is called when the service did not answer, or could not
 */
export function chooseDoor(chosen: Door, signedOut: () => void, failed: () => void): void {
  door = chosen;
  onSignedOut = signedOut;
  onFailure = failed;
}

/** Whether the service can serve requests. Any other answer, such as that of a proxy, comes from there too. */
export async function isThere(): Promise<boolean> {
  const response = await fetch('/readyz', { cache: 'no-store' }).catch(() => undefined);
  // A body that is not read keeps its connection.
  await response?.text().catch(() => undefined);
  return response !== undefined && response.status < 500;
}

/** @throws ApiProblem */
export function get<Answer>(path: string, query: Query = {}): Promise<Answer> {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== '');
  const search = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return call('GET', search === '' ? path : `${path}?${search}`, {});
}

/**
 * Reads a list page by page, to its end.
 * @param isPaged whether it is not a list that comes in one answer
 * @throws ApiProblem
 */
export async function* readPages<Item>(
  path: string,
  query: Query,
  isPaged = true,
): AsyncGenerator<readonly Item[], void> {
  let cursor: string | undefined;
  do {
    const page: Page<Item> = await get(path, { ...query, ...(isPaged && { limit: 200 }), cursor });
    yield page.items;
    cursor = page.nextCursor ?? undefined;
  } while (cursor !== undefined);
}

/**
 * Sends a change. The caller uses the same key when it retries, so a change that arrives twice happens once.
 * @throws ApiProblem
 */
export function send<Answer>(
  method: 'POST' | 'PATCH' | 'DELETE',
  path: string,
  sent: Sent = {},
): Promise<Answer> {
  return call(method, path, sent);
}

async function call<Answer>(method: string, path: string, sent: Sent): Promise<Answer> {
  const { body, idempotencyKey, signal } = sent;
  const by = Date.now() - touchedAt > UNTOUCHED_MS ? 'background' : 'person';
  const headers: Record<string, string> = { accept: 'application/json', 'x-scrip-request': by };
  if (body !== undefined) headers['content-type'] = 'application/json';
  if (idempotencyKey !== undefined) headers['idempotency-key'] = idempotencyKey;
  const response = await fetch(`/${door}/v1${path}`, {
    method,
    headers,
    body: body === undefined ? undefined : JSON.stringify(body),
    signal,
  }).catch(() => undefined);
  if (!response || response.status >= 500) onFailure();
  if (!response) throw new ApiProblem(0, {});
  const fileName = /filename="([^"]+)"/.exec(response.headers.get('content-disposition') ?? '')?.[1];
  const answer = fileName
    ? { download: { name: fileName, content: await complete(response.blob()) } }
    : parse(await complete(response.text()));
  if (response.status === 401 && !(method === 'GET' && path === '/session')) onSignedOut();
  if (!response.ok) throw new ApiProblem(response.status, (answer ?? {}) as Partial<ProblemBody>);
  return answer as Answer;
}

/** Reads a body to its end. One that breaks off is an error. @throws ApiProblem */
function complete<Body>(body: Promise<Body>): Promise<Body> {
  return body.catch(() => {
    throw new ApiProblem(0, {});
  });
}

function parse(text: string): unknown {
  try {
    return text === '' ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Returns a file as a request takes it. Byte by byte, since a call may not have as many arguments. */
export function toBase64(bytes: Uint8Array): string {
  let text = '';
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text);
}
