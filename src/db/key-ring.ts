import { randomBytes } from 'node:crypto';
import { link, mkdir, open, readFile, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { type KeyRing, newRingKey, readKeyRing, sameHash } from '../secrets.ts';
import type { Database } from './pool.ts';
import { sql } from './sql.ts';
import { StartError } from './start-error.ts';

/**
 * Opens the key ring: from the setting, else from the key file in the data folder, which a first start makes.
 * @throws StartError when the database belongs to another key ring, or to one that is missing; nothing is touched then
 */
export async function openKeyRing(
  db: Database,
  config: { keys?: string | undefined; dataDir: string },
): Promise<KeyRing> {
  const known = await db.query<{ key_id: string; check_value: Buffer }>(
    sql`select key_id, check_value from key_checks`,
  );
  const file = join(config.dataDir, 'keys');
  const ring =
    config.keys === undefined
      ? readKeyRing(await readKeyFile(file, known.length === 0), `the key file ${file}`)
      : readKeyRing(config.keys, 'SCRIP_KEYS');
  const own = ring.checks();
  for (const { key_id, check_value } of known) {
    const key = own.find(({ keyId }) => keyId === key_id);
    if (!key || !sameHash(key.check, check_value)) {
      throw new StartError(
        `the key ring does not fit this database: its key "${key_id}" is ${key ? 'another one' : 'missing'} (SCRIP_KEYS, or the key file ${file})`,
      );
    }
  }
  for (const { keyId, check } of own) {
    if (known.some(({ key_id }) => key_id === keyId)) continue;
    await db.query(
      sql`insert into key_checks (key_id, check_value) values (${keyId}, ${check}) on conflict do nothing`,
    );
  }
  // Two first starts with two rings: one was first, and the other one learns it here.
  const settled = await db.query<{ key_id: string }>(sql`select key_id from key_checks`);
  if (settled.some(({ key_id }) => !own.some(({ keyId }) => keyId === key_id))) {
    throw new StartError(
      'another process has just set up this database with another key ring: give both the same SCRIP_KEYS',
    );
  }
  return ring;
}

/**
 * Whether what this key ring seals can be opened by who opens it with this database.
 * @throws Error where the key that seals is none of the database's: it was put back, or set up anew, under a running process
 */
export async function checkKeyRing(db: Database, ring: KeyRing): Promise<void> {
  const [newest] = ring.checks();
  const known = await db.query<{ check_value: Buffer }>(
    sql`select check_value from key_checks where key_id = ${newest?.keyId}`,
  );
  if (!newest || !known.some(({ check_value }) => sameHash(newest.check, check_value)))
    throw new Error('the key ring does not belong to the database');
}

async function readKeyFile(file: string, mayCreate: boolean): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw new StartError(`the key file ${file} cannot be read`);
  }
  if (!mayCreate)
    throw new StartError(`the key ring of this database is missing: set SCRIP_KEYS, or put back the key file ${file}`);
  await createKeyFile(file);
  return readFile(file, 'utf8');
}

/** Whole or not at all, on the disk before it is used, and never over one that another process made meanwhile. */
async function createKeyFile(file: string): Promise<void> {
  await mkdir(join(file, '..'), { recursive: true, mode: 0o700 });
  const draft = `${file}.${randomBytes(6).toString('hex')}`;
  const handle = await open(draft, 'wx', 0o600);
  try {
    await handle.writeFile(`${newRingKey()}\n`);
    await handle.sync();
  } finally {
    await handle.close();
  }
  await link(draft, file).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error;
  });
  await unlink(draft);
}
