import { audit } from '../audit/audit.ts';
import { readSealed } from '../audit/head.ts';
import type { Operator, Service } from '../context.ts';
import type { Queries } from '../db/pool.ts';
import { type Sql, sql } from '../db/sql.ts';
import { addToKeyFile, type KeyFile, removeFromKeyFile } from '../keyring/file.ts';
import { type KeyRing, sealedUnder } from '../keyring/ring.ts';
import { checkKeyRing } from '../keyring/store.ts';
import {
  countLeftBehind,
  countSealed,
  countSecrets,
  countTotpSecrets,
  type OnProgress,
  RingRefused,
  resealAll,
  resealSecrets,
  resealTotpSecrets,
} from './reseal.ts';

function listRingKeys(): Sql {
  return sql`
select k.key_id, k.activation, k.first_used_at, k.superseded_at, k.retired_at, k.dropped_at
from keyring_keys k order by k.activation nulls last, k.key_id`;
}

/**
 * Lets one process at a time change the key ring and its file, until its transaction ends. No other lock has
 * this number.
 */
function lockKeyRing(): Sql {
  return sql`select pg_advisory_xact_lock(7311990003)`;
}

export function endProgress(keyId: string, now: Date): Sql {
  return sql`
    update keyring_rotations set finished_at = coalesce(finished_at, ${now}) where key_id = ${keyId}`;
}

/**
 * Rotates the key ring while the service runs (docs/how-to/key-ring.md).
 *
 * First, all processes switch to sealing under a new key. Then every voucher is sealed again under it, a few
 * at a time. Then the older keys are retired. They can be dropped after a check of every voucher has proven
 * that nothing depends on them.
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
  /** The number of vouchers sealed under it. */
  readonly vouchers: number;
  readonly webhookSecrets: number;
};

function stateOf(row: RingRow): RingKeyState {
  if (row.dropped_at) return 'dropped';
  if (row.retired_at) return 'retired';
  return row.superseded_at ? 'being replaced' : 'in use';
}

/** Lists every key that is in the key ring or was ever in use, and what depends on it. */
export async function listKeyRing(service: Service): Promise<RingKeyInfo[]> {
  const rows = await service.db.query<RingRow>(listRingKeys());
  const [vouchers, secrets] = [await countSealed(service), await countSecrets(service.db)];
  const held = service.keys.checks().map(({ keyId }) => keyId);
  const infoOf = (keyId: string, state: RingKeyState, since: Date | null): RingKeyInfo => ({
    keyId,
    state,
    inKeyRing: held.includes(keyId),
    since,
    vouchers: vouchers.get(keyId) ?? 0,
    webhookSecrets: secrets.get(keyId) ?? 0,
  });
  const unused = held.filter((id) => !rows.some(({ key_id }) => key_id === id));
  return [
    ...unused.map((id) => infoOf(id, 'unused', null)),
    ...rows.map((row) => infoOf(row.key_id, stateOf(row), row.first_used_at)).reverse(),
  ];
}

/**
 * Starts using a new key. If an earlier rotation is unfinished, it continues that one.
 * @param keyFile receives a new key if the ring has no unused one; undefined if it cannot be written
 * @throws RingRefused if there is no new key
 */
export async function beginRotation(
  operator: Operator,
  keyFile: KeyFile | undefined,
): Promise<{ keyId: string; resumed: boolean }> {
  const { db, keys, clock } = operator.service;
  const resumed = await db.transaction(async (tx) => {
    // Two processes that change the key file at the same time could lose a key in use.
    await tx.query(lockKeyRing());
    await checkKeyRing(tx, keys);
    if (keys.inUse.length > 1) return true;
    const next = await findUnused(tx, keys, keyFile);
    // The caller holds the lock, so every transaction that sealed under this key has ended.
    const [old] = await tx.query<{ key_id: string; activation: number }>(sql`
update keyring_keys set superseded_at = ${clock()}
where activation is not null and superseded_at is null returning key_id, activation`);
    if (!old) throw new Error('no key is in use');
    await tx.query(sql`
insert into keyring_keys (key_id, check_value, activation)
values (${next.keyId}, ${next.check}, ${old.activation + 1})`);
    const before = { keyId: old.key_id };
    const after = { keyId: next.keyId };
    await audit(tx, operator, { action: 'keyring.rotate', subject: 'keyring', before, after });
    return false;
  });
  await checkKeyRing(db, keys);
  return { keyId: keys.current, resumed };
}

async function findUnused(tx: Queries, keys: KeyRing, keyFile: KeyFile | undefined) {
  const rows = await tx.query<RingRow>(listRingKeys());
  const find = () => keys.checks().find(({ keyId }) => !rows.some(({ key_id }) => key_id === keyId));
  const found = find();
  if (found) return found;
  if (keyFile !== undefined && keys.holds(await addToKeyFile(keyFile)))
    return find() as NonNullable<typeof found>;
  throw new RingRefused(
    'SCRIP_KEYS contains no key that was not used yet: make one (`scrip keyring make`), put it in front in every process, and run this again',
  );
}

/** Estimates the number of vouchers. */
export async function estimateAll(db: Queries): Promise<number> {
  // An estimate: counting a billion takes longer than the time limit of a statement.
  const [row] = await db.query<{ vouchers: bigint }>(sql`
select greatest(reltuples, 0)::bigint as vouchers from pg_class where oid = 'vouchers'::regclass`);
  return Number(row?.vouchers ?? 0);
}

/**
 * Seals everything under the newest key, proves that nothing is left under another key, and retires the older
 * keys.
 * @returns the ids of the retired keys; undefined if it was stopped
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
    // Locks in the order of the pages of vouchers: first the keys, then the progress.
    // Vouchers are not looked up any more under the keys before the newest.
    const retired = (
      await tx.query<{ key_id: string }>(sql`
update keyring_keys set retired_at = ${clock()}
where retired_at is null
  and activation < (select n.activation from keyring_keys n where n.key_id = ${keys.current})
returning key_id`)
    ).map((row) => row.key_id);
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
 * Removes a key from the key ring. It opens every voucher and every secret to prove that nothing depends on
 * the key. If the key was already dropped in the database, it is only removed from the file, which completes
 * an interrupted run.
 * @param keyFile from which the key is removed; undefined if it cannot be written
 * @returns whether it was done; false if it was stopped
 * @throws RingRefused if something depends on the key
 */
export async function dropKey(
  operator: Operator,
  keyId: string,
  keyFile: KeyFile | undefined,
  prove: OnProgress,
): Promise<boolean> {
  const { service } = operator;
  const { db, keys } = service;
  const row = (await db.query<RingRow>(listRingKeys())).find(({ key_id }) => key_id === keyId);
  if (!row) throw new RingRefused('no such key was ever in use');
  if (keys.routingFrom === keyId)
    throw new RingRefused(
      `the routing key is derived from ${keyId}, since the key ring has no \`routing:\` entry: add the line that ` +
        '`scrip keyring make --routing` prints to SCRIP_KEYS or the key file, start every process again, then drop it',
    );
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

/** Drops the key in the database. Returns false if it was stopped. */
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
    const [dropped] = await tx.query(sql`
update keyring_keys set dropped_at = ${clock()}
where key_id = ${keyId} and retired_at is not null and dropped_at is null returning key_id`);
    if (!dropped) throw new RingRefused(`${keyId} was dropped already`);
    await audit(tx, operator, {
      action: 'keyring.drop',
      subject: 'keyring',
      before: { keyId, state: 'retired' },
      after: { keyId, state: 'dropped' },
    });
  });
  return true;
}
