import { audit } from '../audit/audit.ts';
import { readSealed } from '../audit/head.ts';
import type { Operator, Service } from '../context.ts';
import type { Queries } from '../db/pool.ts';
import { addToKeyFile, removeFromKeyFile } from '../keyring/file.ts';
import { type KeyRing, sealedUnder } from '../keyring/ring.ts';
import { checkKeyRing } from '../keyring/store.ts';
import { countTotpSecrets, resealTotpSecrets } from './people.ts';
import {
  dropRetired,
  endProgress,
  estimateVouchers,
  insertRingKey,
  listRingKeys,
  lockKeyRing,
  retireOlder,
  supersede,
} from './queries.ts';
import {
  countLeftBehind,
  countSealed,
  countSecrets,
  type OnProgress,
  RingRefused,
  resealAll,
  resealSecrets,
} from './reseal.ts';

/**
 * Rotating the key ring while traffic runs (docs/how-to/api-keys.md, "How it stays right").
 *
 * A new key is put to use: from one moment on, in all processes, it seals what is new. Then every voucher
 * is sealed anew and looked up under it, a few at a time. Then the keys before it are retired, and can be
 * dropped once it is proven, voucher by voucher, that nothing depends on them.
 */

type RingRow = {
  key_id: string;
  activation: number | null;
  first_used_at: Date;
  superseded_at: Date | null;
  retired_at: Date | null;
  dropped_at: Date | null;
};

type RingKeyState = 'unused' | 'in use' | 'being replaced' | 'retired' | 'dropped';

export type RingKeyInfo = {
  readonly keyId: string;
  readonly state: RingKeyState;
  readonly inKeyRing: boolean;
  readonly since: Date | null;
  /** Sealed under it. */
  readonly vouchers: number;
  readonly webhookSecrets: number;
};

function stateOf(row: RingRow): RingKeyState {
  if (row.dropped_at) return 'dropped';
  if (row.retired_at) return 'retired';
  return row.superseded_at ? 'being replaced' : 'in use';
}

/** Every key that is in the key ring or ever was in use, and what depends on it. */
export async function listKeyRing(service: Service): Promise<RingKeyInfo[]> {
  const rows = await service.db.query<RingRow>(listRingKeys());
  const [vouchers, secrets] = [await countSealed(service), await countSecrets(service.db)];
  const held = service.keys.checks().map(({ keyId }) => keyId);
  const told = (keyId: string, state: RingKeyState, since: Date | null): RingKeyInfo => ({
    keyId,
    state,
    inKeyRing: held.includes(keyId),
    since,
    vouchers: vouchers.get(keyId) ?? 0,
    webhookSecrets: secrets.get(keyId) ?? 0,
  });
  const unused = held.filter((id) => !rows.some(({ key_id }) => key_id === id));
  return [
    ...unused.map((id) => told(id, 'unused', null)),
    ...rows.map((row) => told(row.key_id, stateOf(row), row.first_used_at)).reverse(),
  ];
}

/**
 * Puts a new key to use, unless an earlier rotation is not finished, or somebody else has just begun one:
 * then that one goes on.
 * @param keyFile where a new key is made if the key ring holds none that was not used; undefined where it
 *   cannot be written
 * @throws RingRefused where there is no new key
 */
export async function beginRotation(
  operator: Operator,
  keyFile: string | undefined,
): Promise<{ keyId: string; resumed: boolean }> {
  const { db, keys, clock } = operator.service;
  const resumed = await db.transaction(async (tx) => {
    // Two that read the key file, and write it, at one moment would lose a key that is put to use.
    await tx.query(lockKeyRing());
    await checkKeyRing(tx, keys);
    if (keys.inUse.length > 1) return true;
    const next = await findUnused(tx, keys, keyFile);
    const [old] = await tx.query<{ key_id: string; activation: number }>(supersede(clock()));
    if (!old) throw new Error('no key is in use');
    await tx.query(insertRingKey(next.keyId, next.check, old.activation + 1));
    const before = { keyId: old.key_id };
    const after = { keyId: next.keyId };
    await audit(tx, operator, { action: 'keyring.rotate', subject: 'keyring', before, after });
    return false;
  });
  await checkKeyRing(db, keys);
  return { keyId: keys.current, resumed };
}

async function findUnused(tx: Queries, keys: KeyRing, keyFile: string | undefined) {
  const rows = await tx.query<RingRow>(listRingKeys());
  const find = () => keys.checks().find(({ keyId }) => !rows.some(({ key_id }) => key_id === keyId));
  const found = find();
  if (found) return found;
  if (keyFile !== undefined && keys.holds(await addToKeyFile(keyFile)))
    return find() as NonNullable<typeof found>;
  throw new RingRefused(
    'SCRIP_KEYS holds no key that was not used yet: make one (`scrip keyring make`), put it in front in every process, and run this again',
  );
}

/** How many vouchers there are to look at, roughly. */
export async function estimateAll(db: Queries): Promise<number> {
  const [row] = await db.query<{ vouchers: bigint }>(estimateVouchers);
  return Number(row?.vouchers ?? 0);
}

/**
 * Seals everything anew under the key in use, proves that nothing is left under another one, and retires
 * those before it.
 * @returns the ids of the keys that were retired; undefined where it was stopped, to be gone on with later
 */
export async function finishRotation(
  operator: Operator,
  reseal: OnProgress,
  prove: OnProgress,
): Promise<readonly string[] | undefined> {
  const { service } = operator;
  const { db, keys, clock } = service;
  if (!(await resealAll(service, reseal))) return undefined;
  await resealSecrets(service);
  await resealTotpSecrets(service);
  const left = await countLeftBehind(service, prove);
  if (left === undefined) return undefined;
  if (left > 0)
    throw new RingRefused(
      `${left} vouchers are not under ${keys.current}: run this again, another rotation may have begun`,
    );
  return db.transaction(async (tx) => {
    await tx.query(lockKeyRing());
    // In the order in which a page of vouchers does: the keys, then the progress.
    const retired = (await tx.query<{ key_id: string }>(retireOlder(keys.current, clock()))).map(
      (row) => row.key_id,
    );
    await tx.query(endProgress(keys.current, clock()));
    if (retired.length > 0)
      await audit(tx, operator, {
        action: 'keyring.retire',
        subject: 'keyring',
        before: { keyId: keys.current, beingReplaced: retired },
        after: { keyId: keys.current, retired },
      });
    return retired;
  });
}

/**
 * Lets the key ring go without a key. That nothing depends on it is not noted anywhere but looked up:
 * every voucher is opened and compared, every secret looked at. One that was dropped and is in the key
 * file still is taken out of it: so ends what was interrupted between the two.
 * @param keyFile out of which the key is taken; undefined where it cannot be written
 * @returns whether it was done; false where it was stopped
 * @throws RingRefused where something depends on it
 */
export async function dropKey(
  operator: Operator,
  keyId: string,
  keyFile: string | undefined,
  prove: OnProgress,
): Promise<boolean> {
  const { service } = operator;
  const { db, keys } = service;
  const row = (await db.query<RingRow>(listRingKeys())).find(({ key_id }) => key_id === keyId);
  if (!row) throw new RingRefused('no such key was ever in use');
  if (row.dropped_at && (keyFile === undefined || !keys.holds(keyId)))
    throw new RingRefused(`${keyId} was dropped already`);
  if (!row.dropped_at && !(await noteDropped(operator, row, prove))) return false;
  if (keyFile !== undefined)
    await db.transaction(async (tx) => {
      await tx.query(lockKeyRing());
      await removeFromKeyFile(keyFile, keyId);
    });
  return true;
}

/**
 * The part of the database, where a key that is noted as dropped is not asked for any more. False where
 * it was stopped.
 */
async function noteDropped(operator: Operator, row: RingRow, prove: OnProgress): Promise<boolean> {
  const { service } = operator;
  const { db, clock } = service;
  const keyId = row.key_id;
  if (!row.retired_at)
    throw new RingRefused(`${keyId} is ${stateOf(row)}: \`scrip keyring rotate\` replaces it`);
  const secrets = (await countSecrets(db)).get(keyId) ?? 0;
  if (secrets > 0) throw new RingRefused(`${secrets} webhook secrets are sealed under ${keyId}`);
  const apps = (await countTotpSecrets(db)).get(keyId) ?? 0;
  if (apps > 0) throw new RingRefused(`${apps} secrets of authenticator apps are sealed under ${keyId}`);
  const head = await readSealed(db);
  if (head && sealedUnder(head) === keyId)
    throw new RingRefused(`the end of the audit is sealed under ${keyId}`);
  await checkKeyRing(db, service.keys);
  const left = await countLeftBehind(service, prove);
  if (left === undefined) return false;
  if (left > 0)
    throw new RingRefused(
      `${left} vouchers are not under the key in use: \`scrip keyring rotate\` finishes that`,
    );
  await db.transaction(async (tx) => {
    await tx.query(lockKeyRing());
    if ((await tx.query(dropRetired(keyId, clock()))).length === 0)
      throw new RingRefused(`${keyId} was dropped already`);
    await audit(tx, operator, {
      action: 'keyring.drop',
      subject: 'keyring',
      before: { keyId, state: 'retired' },
      after: { keyId, state: 'dropped' },
    });
  });
  return true;
}
