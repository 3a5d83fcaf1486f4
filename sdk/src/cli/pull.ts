import { readFile } from 'node:fs/promises';
import { signWebhook } from '../webhook.ts';
import { fail, type Line, wrongUsage } from './command.ts';
import { writeWhole } from './file.ts';
import { openPortal, pause, wasStopped } from './session.ts';
import { say } from './terminal.ts';

/** Reads the events of a pull endpoint, and hands each one to a receiver until it has taken it. */

/** Between two readings without events, and after a failure; after further failures twice as long. */
const PAUSE_MS = 2_000;
const PAUSE_MAX_MS = 60_000;
const TIMEOUT_MS = 30_000;

export type PulledEvent = {
  readonly type: string;
  readonly id: string;
  /** The body and the headers of a delivery; signed, if there is a secret. */
  readonly body: string;
  readonly headers: Record<string, string>;
};

type Item = { readonly id: string; readonly type: string };
type Page = { readonly items: readonly Item[]; readonly nextCursor: string };

/**
 * Passes events to `forward`, in order, until the process is asked to stop. The cursor is stored when all
 * events of a page were taken, so after a restart some come again, and none is left out.
 * @param forward returns whether the receiver took the event; if not, it gets it again
 */
export async function pull(
  line: Line,
  secret: string | undefined,
  forward: (event: PulledEvent) => Promise<boolean>,
): Promise<void> {
  const file = line.text('cursor') ?? wrongUsage('--pull needs --cursor FILE, where it stores how far it is');
  const portal = await openPortal(line);
  let cursor = await readCursor(file);
  let failures = 0;
  while (!wasStopped()) {
    const page = await read(portal, line.text('endpoint'), cursor);
    if (page === undefined) {
      await pause(delayOf(failures++));
      continue;
    }
    failures = 0;
    for (const item of page.items) if (!(await take(item, secret, forward))) return;
    if (page.nextCursor !== cursor) await writeCursor(file, page.nextCursor);
    cursor = page.nextCursor;
    if (page.items.length === 0) await pause(PAUSE_MS);
  }
}

const delayOf = (failures: number) => Math.min(PAUSE_MAX_MS, PAUSE_MS * 2 ** failures);

/** @returns false if the process was asked to stop before the receiver took the event */
async function take(
  { id, ...event }: Item,
  secret: string | undefined,
  forward: (event: PulledEvent) => Promise<boolean>,
): Promise<boolean> {
  const body = JSON.stringify(event);
  for (let failures = 0; !wasStopped(); failures++) {
    const signed = secret === undefined ? { 'webhook-id': id } : await signWebhook(body, secret, { id });
    const headers = { 'content-type': 'application/json', ...signed };
    if (await forward({ type: event.type, id, body, headers })) return true;
    await pause(delayOf(failures));
  }
  return false;
}

/**
 * @returns undefined if the service cannot answer now
 * @throws CommandError for an answer that stays the same
 */
async function read(
  { baseUrl, token }: Awaited<ReturnType<typeof openPortal>>,
  endpoint: string | undefined,
  after: string | undefined,
): Promise<Page | undefined> {
  const query = new URLSearchParams({ ...(endpoint && { endpoint }), ...(after && { after }) });
  try {
    const response = await fetch(`${baseUrl}/portal/v1/events?${query}`, {
      headers: { authorization: `Bearer ${token}` },
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    const answer = (await response.json()) as Page & { readonly detail?: string };
    if (response.ok) return answer;
    if (response.status < 500 && response.status !== 429) return fail(answer.detail ?? 'refused');
    say(`the service answered ${response.status}: trying again`);
  } catch (error) {
    if (!(error instanceof TypeError || error instanceof DOMException || error instanceof SyntaxError))
      throw error;
    say(`the service did not answer: ${error.message}`);
  }
  return undefined;
}

async function readCursor(file: string): Promise<string | undefined> {
  try {
    return (await readFile(file, 'utf8')).trim();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return code === 'ENOENT' ? undefined : fail(`${file} cannot be read (${code})`);
  }
}

const writeCursor = (file: string, cursor: string) =>
  writeWhole(
    file,
    (async function* () {
      yield `${cursor}\n`;
    })(),
    true,
  );
