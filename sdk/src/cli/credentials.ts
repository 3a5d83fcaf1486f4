import { type FileHandle, open } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { fail, type Line, wrongUsage } from './command.ts';

/** Who calls which service: from the environment, or from a file that nobody else can read. */

const NAMES = ['SCRIP_BASE_URL', 'SCRIP_KEY_ID', 'SCRIP_SECRET', 'SCRIP_VARIANT'] as const;
type Name = (typeof NAMES)[number];
type Found = Readonly<Partial<Record<Name, string>>>;

export type Credentials = {
  readonly baseUrl: string;
  readonly keyId: string;
  readonly secret: string;
  readonly variant: 'a' | 'b';
};

const MOST_BYTES = 16 * 1024;

/** Where the file lies unless something else is said. */
export function usualPath(): string {
  return join(process.env['XDG_CONFIG_HOME'] || join(homedir(), '.config'), 'scrip', 'credentials');
}

/**
 * Options come before the environment, and the environment before the file. A key and its secret always come from the same
 * place.
 * @throws CommandError, UsageError; their texts hold no value
 */
export async function readCredentials(line: Line): Promise<Credentials> {
  const env = fromEnvironment();
  const given = line.text('credentials') ?? (process.env['SCRIP_CREDENTIALS'] || undefined);
  const hasKey = env.SCRIP_KEY_ID !== undefined || env.SCRIP_SECRET !== undefined;
  const file = await readFile(given ?? usualPath(), given !== undefined);
  const { SCRIP_KEY_ID: keyId, SCRIP_SECRET: secret } = hasKey ? env : file;
  const baseUrl = line.text('base-url') ?? env.SCRIP_BASE_URL ?? file.SCRIP_BASE_URL;
  const usual = env.SCRIP_VARIANT ?? file.SCRIP_VARIANT ?? 'a';
  const missing = Object.entries({ SCRIP_BASE_URL: baseUrl, SCRIP_KEY_ID: keyId, SCRIP_SECRET: secret })
    .filter(([, value]) => value === undefined)
    .map(([name]) => name);
  if (missing.length > 0 || !baseUrl || !keyId || !secret) {
    fail(`${missing.join(', ')} not set: set it in the environment, or in a file of mode 600 at ${usualPath()}`);
  }
  if (usual !== 'a' && usual !== 'b') wrongUsage('SCRIP_VARIANT must be a or b');
  const asked = line.text('variant');
  return { baseUrl, keyId, secret, variant: asked === 'a' || asked === 'b' ? asked : usual };
}

function fromEnvironment(): Found {
  const found = NAMES.map((name) => [name, process.env[name]] as const).filter(([, value]) => value);
  return Object.fromEntries(found);
}

async function readFile(path: string, isAskedFor: boolean): Promise<Found> {
  let file: FileHandle;
  try {
    file = await open(path, 'r');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' && !isAskedFor) return {};
    fail(`${path} cannot be read (${code})`);
  }
  try {
    await requirePrivate(file, path);
    return parse(await file.readFile('utf8'), path);
  } finally {
    await file.close();
  }
}

/** Looks at the open file, so that what was judged is what is read. */
async function requirePrivate(file: FileHandle, path: string): Promise<void> {
  const { mode, uid, size } = await file.stat();
  if ((mode & 0o170000) !== 0o100000 || size > MOST_BYTES) fail(`${path} is no file of credentials`);
  // Windows has no such modes.
  if (process.platform === 'win32') return;
  if ((mode & 0o077) !== 0) {
    fail(`${path} can be read by others, so it is not used: chmod 600 ${path}, and have the key rotated`);
  }
  const me = process.getuid?.();
  if (uid !== me && uid !== 0) fail(`${path} belongs to somebody else, so it is not used`);
}

/** Lines of `NAME=value`, by the names of the environment; `#` begins a comment line. */
function parse(text: string, path: string): Found {
  const found: Partial<Record<Name, string>> = {};
  for (const [index, raw] of text.split(/\r?\n/).entries()) {
    const line = raw.trim();
    if (line === '' || line.startsWith('#')) continue;
    const [, name, value] = /^([A-Z_]+)\s*=\s*(.+)$/.exec(line) ?? [];
    const known = NAMES.find((each) => each === name);
    if (!known || value === undefined) {
      fail(`${path}, line ${index + 1}: it must be one of ${NAMES.map((each) => `${each}=…`).join(', ')}`);
    }
    found[known] = value.replace(/^(["'])(.*)\1$/, '$2');
  }
  return found;
}
