import Type, { type Static } from 'typebox';
import { audit } from '../audit/audit.ts';
import { readSealed } from '../audit/chain.ts';
import type { Operator, Service } from '../context.ts';
import type { Queries } from '../db/pool.ts';
import { type Sql, sql } from '../db/sql.ts';
import { addToKeyFile, type KeyFile, removeFromKeyFile } from '../keyring/file.ts';
import { type KeyRing, sealedUnder } from '../keyring/ring.ts';
import { checkKeyRing } from '../keyring/store.ts';
import { listingAll } from '../listing.ts';
import { tableOf } from '../operation.ts';
import { SEE_TOKENS } from '../principal.ts';
import { Count, NullableTime, Text, Word } from '../schema.ts';
import {
  ALL_SECRETS,
  countLeftBehind,
  countSealed,
  countSecrets,
  type OnProgress,
  RingRefused,
  resealAll,
  resealSecrets,
  WEBHOOK_SECRETS,
} from './reseal.ts';

/**
 * Rotates the key ring while the service runs (docs/how-to/key-ring.md).
 *
 * First, all processes switch to sealing under a new key. Then every voucher is sealed again under it, a few
 * at a time. Then the older keys are retired. They can be dropped after a check of every voucher has proven
 * that nothing depends on them.
 */

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

const RingKey = Type.Object({
  keyId: Text,
  state: Word(['unused', 'in use', 'being replaced', 'retired', 'dropped'] as const),
  inKeyRing: Type.Boolean({ title: 'In the key ring' }),
  since: NullableTime,
  vouchers: Count,
  webhookSecrets: Count,
});

type RingKeyInfo = Static<typeof RingKey>;
type UsedKey = Pick<RingKeyInfo, 'keyId' | 'state' | 'since'>;

/** Lists the keys that were ever in use, newest first. */
const listUsed = (db: Queries) =>
  db.query<UsedKey>(sql`
select key_id as "keyId", first_used_at as since,
  case
    when dropped_at is not null then 'dropped'
    when retired_at is not null then 'retired'
    when superseded_at is not null then 'being replaced'
    else 'in use'
  end as state
from keyring_keys order by activation desc nulls first, key_id desc`);

/** Lists every key that is in the key ring or was ever in use, and what depends on it. */
export async function listKeyRing(service: Service): Promise<RingKeyInfo[]> {
  const used = await listUsed(service.db);
  const vouchers = await countSealed(service);
  const secrets = await countSecrets(service.db, WEBHOOK_SECRETS);
  const held = service.keys.checks().map(({ keyId }) => keyId);
  const unused = held
    .filter((id) => !used.some(({ keyId }) => keyId === id))
    .map((keyId): UsedKey => ({ keyId, state: 'unused', since: null }));
  return [...unused, ...used].map((key) => ({
    ...key,
    inKeyRing: held.includes(key.keyId),
    vouchers: vouchers.get(key.keyId) ?? 0,
    webhookSecrets: secrets.get(key.keyId) ?? 0,
  }));
}

const show = listingAll({
  name: 'keyring.show',
  summary: 'List each key of the key ring, and what is sealed under it',
  path: '/keyring',
  item: RingKey,
  roles: SEE_TOKENS,
  rows: ({ service }) => listKeyRing(service),
});

export const OPERATIONS = tableOf(show);

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
    const [old] = await tx.query<{ keyId: string; activation: number }>(sql`
update keyring_keys set superseded_at = ${clock()}
where activation is not null and superseded_at is null returning key_id as "keyId", activation`);
    if (!old) throw new Error('no key is in use');
    await tx.query(sql`
insert into keyring_keys (key_id, check_value, activation)
values (${next.keyId}, ${next.check}, ${old.activation + 1})`);
    const before = { keyId: old.keyId };
    const after = { keyId: next.keyId };
    await audit(tx, operator, { action: 'keyring.rotate', subject: 'keyring', before, after });
    return false;
  });
  await checkKeyRing(db, keys);
  return { keyId: keys.current, resumed };
}

async function findUnused(tx: Queries, keys: KeyRing, keyFile: KeyFile | undefined) {
  const used = await listUsed(tx);
  const find = () => keys.checks().find(({ keyId }) => !used.some((each) => each.keyId === keyId));
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
  for (const secrets of ALL_SECRETS) await resealSecrets(service, secrets);
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
      await tx.query<{ keyId: string }>(sql`
update keyring_keys set retired_at = ${clock()}
where retired_at is null
  and activation < (select n.activation from keyring_keys n where n.key_id = ${keys.current})
returning key_id as "keyId"`)
    ).map(({ keyId }) => keyId);
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
  const state = (await listUsed(db)).find((each) => each.keyId === keyId)?.state;
  if (state === undefined) throw new RingRefused('no such key was ever in use');
  if (keys.routingFrom === keyId)
    throw new RingRefused(
      `the routing key is derived from ${keyId}, since the key ring has no \`routing:\` entry: add the line that ` +
        '`scrip keyring make --routing` prints to SCRIP_KEYS or the key file, start every process again, then drop it',
    );
  if (state === 'dropped' && (keyFile === undefined || !keys.holds(keyId)))
    throw new RingRefused(`${keyId} was dropped already`);
  if (state !== 'dropped' && !(await noteDropped(operator, keyId, state, prove))) return false;
  if (keyFile !== undefined)
    await db.transaction(async (tx) => {
      await tx.query(lockKeyRing());
      await removeFromKeyFile(keyFile, keyId);
    });
  return true;
}

/** Drops the key in the database. Returns false if it was stopped. */
async function noteDropped(
  operator: Operator,
  keyId: string,
  state: UsedKey['state'],
  prove: OnProgress,
): Promise<boolean> {
  const { service } = operator;
  const { db, clock } = service;
  if (state !== 'retired')
    throw new RingRefused(`${keyId} is ${state}: \`scrip keyring rotate\` replaces it`);
  for (const secrets of ALL_SECRETS) {
    const left = (await countSecrets(db, secrets)).get(keyId) ?? 0;
    if (left > 0) throw new RingRefused(`${left} ${secrets.what} are sealed under ${keyId}`);
  }
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
