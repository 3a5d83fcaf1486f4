import { readFileSync } from 'node:fs';
import { sameHash } from '../credentials.ts';
import { slotOfSerial } from '../db/buckets.ts';
import { requireOwnFile } from '../db/embedded.ts';
import { StartError } from '../db/errors.ts';
import type { Operation } from '../db/operation.ts';
import { type Database, finds, type Queries } from '../db/pool.ts';
import { sql } from '../db/sql.ts';
import { readOrdinary } from '../private-file.ts';
import { createKeyFile, isReadByOthers, keyFile, ownKeyFile, readKeyRing } from './file.ts';
import { findKms, type KmsSettings } from './kms.ts';
import type { KeyRing } from './ring.ts';
import { openAgain, openRing } from './sealed.ts';

/** A key as the database knows it. */
type Known = { readonly keyId: string; readonly check: Uint8Array };

const COLUMNS = sql`key_id as "keyId", check_value as "check"`;

/** Lists the keys that the database knows, except dropped ones. */
const KNOWN = sql`select ${COLUMNS} from keyring_keys where dropped_at is null`;

/** Lists the keys in use, oldest first. */
const IN_USE = sql`
select ${COLUMNS} from keyring_keys where activation is not null and retired_at is null order by activation`;

type Given = KmsSettings & {
  readonly keys?: string | undefined;
  readonly keysFile?: string | undefined;
  readonly dataDir: string;
  readonly databaseUrl?: string | undefined;
  /** Whether the data folder was named, rather than the default one. */
  readonly isDataDirGiven?: boolean;
};

/**
 * Compares the key ring with a database before it is migrated, so that a wrong ring is refused before any
 * change.
 * @param owner a connection of the schema's owner
 * @param mayLack whether the key ring may be missing
 * @throws StartError as `openKeyRing`
 */
export async function checkBeforeMigration(owner: Queries, config: Given, mayLack: boolean): Promise<void> {
  // `KNOWN` before the migrations, of any schema version: `dropped_at` may not exist yet.
  const known = (await finds(owner, sql`select where to_regclass('scrip.keyring_keys') is not null`))
    ? await owner.query<Known>(sql`
select ${COLUMNS} from scrip.keyring_keys k where to_jsonb(k) ->> 'dropped_at' is null`)
    : [];
  const ring = await findKeyRing(config);
  if (ring) fit(ring, known, config);
  else if (known.length > 0 && !mayLack) throw missing(config);
}

/** Whether other accounts of this machine can read the key file. A key ring from a setting has no file. */
export async function isExposed(config: Given): Promise<boolean> {
  // A secret that a setting provides is protected by its provider.
  const file = ownKeyFile(config);
  return file !== undefined && isReadByOthers(file);
}

/**
 * Opens the key ring: from the setting, or from the key file of the data folder, which a first start creates.
 * @throws StartError if the database belongs to another key ring, or to a missing one; then nothing is
 *   changed
 */
export async function openKeyRing(db: Database, config: Given): Promise<KeyRing> {
  const known = await db.query<Known>(KNOWN);
  let ring = await findKeyRing(config);
  if (!ring) {
    if (known.length > 0) throw missing(config);
    // An external database outlives this folder. A key ring that was created here unasked would be lost with
    // it.
    if (config.databaseUrl !== undefined && !config.isDataDirGiven) throw notAskedFor();
    await createKeyFile(keyFile(config));
    ring = (await findKeyRing(config)) as KeyRing;
  }
  fit(ring, known, config);
  const own = ring.checks();
  const [newest] = own;
  if (known.length === 0 && newest) {
    await db.query(sql`
insert into keyring_keys (key_id, check_value, activation) values (${newest.keyId}, ${newest.check}, 1)
on conflict do nothing`);
  }
  await db.query(sql`insert into routing (check_value) values (${ring.routingCheck}) on conflict do nothing`);
  // Two simultaneous first starts may have two key rings. The later one fails here.
  const inUse = await db.query<Known>(KNOWN);
  if (inUse.some((known) => !own.some(({ keyId }) => keyId === known.keyId))) {
    throw new StartError(
      'another process has just set up this database with another key ring: give both the same SCRIP_KEYS',
    );
  }
  await checkRouting(db, ring);
  await checkKeyRing(db, ring);
  await checkSlots(db, ring);
  return ring;
}

/**
 * Checks the routing key. Printed serial numbers depend on it. With another one, vouchers would be searched
 * on the wrong shard.
 */
async function checkRouting(db: Queries, ring: KeyRing): Promise<void> {
  const [row] = await db.query<{ check: Buffer }>(sql`select check_value as "check" from routing`);
  if (!row || !sameHash(row.check, ring.routingCheck))
    throw new StartError(
      'the routing key of the key ring is not the one of this database: put its `routing:` entry back (SCRIP_KEYS, or the key file)',
    );
}

/** The number of vouchers that a start checks. A wrong key would have created the newest ones. */
const CHECKED = 5;

/**
 * Checks the slots of some vouchers. The slot of a code must equal that of its serial number. Otherwise the
 * voucher was not created with this key ring.
 */
async function checkSlots(db: Queries, ring: KeyRing): Promise<void> {
  const newest = await db.query<{ serial: bigint; sealed: Buffer }>(
    sql`select serial_number as serial, sealed from vouchers order by serial_number desc limit ${CHECKED}`,
  );
  for (const { serial, sealed } of newest)
    if (fits(ring, serial, sealed) === false)
      throw new StartError(
        `the code of voucher ${serial} does not fit its serial number: the database was altered, or the routing key is not its own`,
      );
}

/** Whether a voucher fits the key ring. Undefined if it cannot be opened: its calls report that. */
function fits(ring: KeyRing, serialNumber: bigint, sealed: Buffer): boolean | undefined {
  try {
    return ring.slotOf(ring.open(serialNumber, sealed).code) === slotOfSerial(serialNumber);
  } catch {
    return undefined;
  }
}

/**
 * Reads which keys are in use, and checks that this key ring contains them.
 * @throws KeyMissing if one of them is missing; Error if the database has another key of the same name
 */
export async function checkKeyRing(db: Queries, ring: KeyRing): Promise<void> {
  refresh(ring, await db.query<Known>(IN_USE));
}

/** Like `checkKeyRing`, with one statement for all look-ups of the same moment. */
export const REFRESH_KEY_RING: Operation<KeyRing, readonly Known[], void> = {
  keysOf: () => [],
  async run(db, rings) {
    const inUse = await db.query<Known>(IN_USE);
    return rings.map(() => inUse);
  },
  answer: refresh,
};

/**
 * Prepares a transaction for sealing. The newest key stays the newest until the transaction ends. A rotation
 * waits for it, and therefore finds every voucher that must be sealed again.
 * @throws as `checkKeyRing`
 */
export async function holdKeyRing(tx: Queries, ring: KeyRing): Promise<void> {
  // They stay in use until the transaction ends. A new key has to wait for it.
  const inUse = await tx.query<Known>(sql`select ${COLUMNS} from hold_key_ring()`);
  check(ring, inUse);
  ring.use(idsOf(inUse));
}

/** An answer may be outdated: if it was read before a newer key came into use, the newer key stays. */
function refresh(ring: KeyRing, inUse: readonly Known[]): void {
  check(ring, inUse);
  const newest = inUse.at(-1)?.keyId;
  if (!ring.inUse.slice(0, -1).some(({ id }) => id === newest)) ring.use(idsOf(inUse));
}

const idsOf = (inUse: readonly Known[]) => inUse.map(({ keyId }) => keyId);

function check(ring: KeyRing, inUse: readonly Known[]): void {
  for (const { keyId } of inUse) ring.holds(keyId);
  const own = ring.checks();
  // A key that this ring lacks is reported when it is used.
  for (const known of inUse) {
    const key = own.find(({ keyId }) => keyId === known.keyId);
    if (key && !sameHash(key.check, known.check))
      throw new Error('the key ring does not belong to the database');
  }
}

/** Returns the text of the key ring, sealed or not, for a copy; undefined if there is none. */
export async function readKeyRingText(config: Given): Promise<string | undefined> {
  if (!(await findKeyRing(config))) return undefined;
  return config.keys ?? (await readOrdinary(keyFile(config).path));
}

/** Returns the key ring. @throws StartError if there is none */
export async function requireKeyRing(config: Given): Promise<KeyRing> {
  const ring = await findKeyRing(config);
  if (!ring) throw missing(config);
  return ring;
}

/** Finds the key ring; undefined if there is neither a setting nor a key file. */
export async function findKeyRing(config: Given): Promise<KeyRing | undefined> {
  if (config.keys !== undefined)
    return readKeyRing(await openRing(config.keys, 'SCRIP_KEYS', findKms(config)), 'SCRIP_KEYS');
  const { path: file, kms } = keyFile(config);
  const source = `the key file ${file}`;
  const isGivenFile = config.keysFile !== undefined;
  // The default data folder is below the current folder, where another account may have put a key ring.
  if (!isGivenFile) await requireOwnFile(file, 'the key file');
  try {
    const text = await readOrdinary(file);
    return readKeyRing(await openRing(text, source, kms), source, () =>
      openAgain(readFileSync(file, 'utf8'), source),
    );
  } catch (error) {
    if (error instanceof StartError) throw error;
    const { code } = error as NodeJS.ErrnoException;
    const isMissing = code === 'ENOENT';
    if (isMissing && isGivenFile)
      throw new StartError(`the key ring is missing: there is no file ${file}, which SCRIP_KEYS_FILE names`);
    if (isMissing) return undefined;
    throw new StartError(`${source} cannot be read (${code})`);
  }
}

/**
 * Checks the key ring against the keys of the database.
 * @throws StartError if the ring lacks a key that the database knows, or has a different one under its name
 */
function fit(ring: KeyRing, known: readonly Known[], config: Given): void {
  const own = ring.checks();
  for (const { keyId, check } of known) {
    const key = own.find((each) => each.keyId === keyId);
    if (!key || !sameHash(key.check, check)) {
      throw new StartError(
        `the key ring does not fit this database: its key "${keyId}" is ${key ? 'another one' : 'missing'} (SCRIP_KEYS, or the key file ${keyFile(config).path})`,
      );
    }
  }
}

function missing(config: Given): StartError {
  return new StartError(
    `the key ring of this database is missing: set SCRIP_KEYS, or put back the key file ${keyFile(config).path}`,
  );
}

function notAskedFor(): StartError {
  return new StartError(
    'there is no key ring, and none is made unasked beside a database elsewhere: set SCRIP_KEYS or SCRIP_KEYS_FILE ' +
      '(`scrip keyring make --ring` prints a new ring), or name a folder that lasts in SCRIP_DATA_DIR for a key file',
  );
}
