import { type FileHandle, open } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Scrip } from '../scrip.ts';
import type { CallOptions, Variant } from '../types.ts';
import { fail, type Line, wholeOf, wrongUsage } from './command.ts';
import { say } from './terminal.ts';

/** The client of a command, and its credentials. */
export type Session = {
  readonly scrip: Scrip<Variant>;
  /** The same client, if it speaks variant A, or variant B. */
  readonly inA: Scrip<'a'> | null;
  readonly inB: Scrip<'b'> | null;
  readonly call: CallOptions;
};

const stopping = new AbortController();

/** Aborts calls when the process is asked to stop; a second signal ends it at once. */
export function listenForStop(): void {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      if (stopping.signal.aborted) process.exit(130);
      stopping.abort();
    });
  }
}

/** Whether the process was asked to stop. */
export const wasStopped = () => stopping.signal.aborted;

/** Waits for a time, or until the process is asked to stop. */
export async function pause(ms: number): Promise<void> {
  await sleep(ms, undefined, { signal: stopping.signal }).catch(() => {});
}

/** Waits until the process is asked to stop. */
export function untilStopped(): Promise<void> {
  return new Promise((resolve) => stopping.signal.addEventListener('abort', () => resolve(), { once: true }));
}

/** @throws CommandError, UsageError */
export async function openSession(line: Line): Promise<Session> {
  const { variant, ...credentials } = await readCredentials(line);
  const seconds = wholeOf(line, 'timeout');
  const connect = <V extends Variant>(one: V) => {
    try {
      return new Scrip({
        ...credentials,
        variant: one,
        onRetry: ({ error, delayMs }) => {
          if (process.stderr.isTTY) say(`${error.code}; trying again in ${Math.ceil(delayMs / 1000)} s`);
        },
      });
    } catch (error) {
      // The client's messages about its options hold no value.
      return wrongUsage((error as Error).message);
    }
  };
  const [inA, inB] = variant === 'a' ? [connect('a'), null] : [null, connect('b')];
  const call = { signal: stopping.signal, ...(seconds !== undefined && { deadlineMs: seconds * 1000 }) };
  return { scrip: (inA ?? inB) as Scrip<Variant>, inA, inB, call };
}

/**
 * The reference of something new. A generated one is printed before the request is sent, so that it is
 * never lost.
 */
export function newReference(line: Line): string {
  const given = line.text('reference');
  if (given !== undefined) return given;
  const reference = crypto.randomUUID();
  say(`reference ${reference}`);
  return reference;
}

const NAMES = [
  'SCRIP_BASE_URL',
  'SCRIP_KEY_ID',
  'SCRIP_SECRET',
  'SCRIP_VARIANT',
  'SCRIP_PORTAL_TOKEN',
] as const;
type Found = Readonly<Partial<Record<(typeof NAMES)[number], string>>>;
const FILE_MAX_BYTES = 16 * 1024;

/** The file of credentials, unless another one is named. */
export function credentialsPath(): string {
  return join(process.env['XDG_CONFIG_HOME'] || join(homedir(), '.config'), 'scrip', 'credentials');
}

/** The address of the service, and the token for its portal. @throws CommandError */
export async function openPortal(line: Line) {
  const { env, file } = await readSources(line);
  const baseUrl = line.text('base-url') ?? env.SCRIP_BASE_URL ?? file.SCRIP_BASE_URL;
  const token = env.SCRIP_PORTAL_TOKEN ?? file.SCRIP_PORTAL_TOKEN;
  if (!baseUrl || !token) fail('SCRIP_BASE_URL and SCRIP_PORTAL_TOKEN must be set');
  return { baseUrl: baseUrl.replace(/\/$/, ''), token };
}

async function readSources(line: Line) {
  const env: Found = Object.fromEntries(NAMES.map((name) => [name, process.env[name] || undefined]));
  const given = line.text('credentials') ?? (process.env['SCRIP_CREDENTIALS'] || undefined);
  return { env, file: await readFile(given ?? credentialsPath(), given !== undefined) };
}

/**
 * Options come before the environment, and the environment before the file. Key and secret have the same
 * source.
 */
async function readCredentials(line: Line) {
  const { env, file } = await readSources(line);
  const { SCRIP_KEY_ID: keyId, SCRIP_SECRET: secret } = env.SCRIP_KEY_ID || env.SCRIP_SECRET ? env : file;
  const baseUrl = line.text('base-url') ?? env.SCRIP_BASE_URL ?? file.SCRIP_BASE_URL;
  const variant = line.text('variant') ?? env.SCRIP_VARIANT ?? file.SCRIP_VARIANT ?? 'a';
  if (!baseUrl || !keyId || !secret) {
    const values = { SCRIP_BASE_URL: baseUrl, SCRIP_KEY_ID: keyId, SCRIP_SECRET: secret };
    const missing = Object.entries(values).filter(([, value]) => !value);
    const names = missing.map(([name]) => name).join(', ');
    fail(`${names} not set: set it in the environment, or in a file of mode 600 at ${credentialsPath()}`);
  }
  if (variant !== 'a' && variant !== 'b') wrongUsage('SCRIP_VARIANT must be a or b');
  const portalToken = env.SCRIP_PORTAL_TOKEN ?? file.SCRIP_PORTAL_TOKEN;
  return { baseUrl, keyId, secret, variant, portalToken } as const;
}

async function readFile(path: string, isNamed: boolean): Promise<Found> {
  let file: FileHandle;
  try {
    file = await open(path, 'r');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' && !isNamed) return {};
    fail(`${path} cannot be read (${code})`);
  }
  try {
    await requirePrivate(file, path);
    return parse(await file.readFile('utf8'), path);
  } finally {
    await file.close();
  }
}

/** Checks the open file, so that the file that was checked is the one that is read. */
async function requirePrivate(file: FileHandle, path: string): Promise<void> {
  const stats = await file.stat();
  if (!stats.isFile() || stats.size > FILE_MAX_BYTES) fail(`${path} is not a file of credentials`);
  // Windows has no such modes.
  if (process.platform === 'win32') return;
  if ((stats.mode & 0o077) !== 0)
    fail(`${path} can be read by others, so it is not used: chmod 600 ${path}, and have the key rotated`);
  if (stats.uid !== process.getuid?.() && stats.uid !== 0)
    fail(`${path} belongs to another user, so it is not used`);
}

function parse(text: string, path: string): Found {
  const found: Record<string, string> = {};
  for (const [index, raw] of text.split(/\r?\n/).entries()) {
    const line = raw.trim();
    if (line === '' || line.startsWith('#')) continue;
    const [, name = '', value = ''] = /^([A-Z_]+)\s*=\s*(.+)$/.exec(line) ?? [];
    if (!NAMES.some((each) => each === name))
      fail(`${path}, line ${index + 1}: it must be one of ${NAMES.map((each) => `${each}=…`).join(', ')}`);
    found[name] = value.replace(/^(["'])(.*)\1$/, '$2');
  }
  return found;
}
