import { audit } from '../audit/audit.ts';
import type { Operator, Service } from '../context.ts';
import { addToKeyFile, checkKeyRing } from '../db/key-ring.ts';
import type { Queries } from '../db/pool.ts';
import { countSecrets, resealSecrets } from '../webhooks/reseal.ts';
import { countVouchers, endProgress } from './reseal.queries.ts';
import { countLeftBehind, countSealed, resealVouchers, type Watch } from './reseal.ts';
import { dropRetired, insertRingKey, listRingKeys, retireOlder, supersede } from './rotate.queries.ts';

/**
 * Rotating the key ring while traffic runs (docs/keys.md, "How it stays right").
 *
 * A new key is put to use: from one moment on, in all processes, it seals what is new. Then every voucher is sealed anew and
 * looked up under it, a few at a time. Then the keys before it are retired, and can be dropped once it is proven, voucher by
 * voucher, that nothing depends on them.
 */

/** Why something cannot be done to the key ring, in words for the operator. */
export class RingRefused extends Error {}

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
 * Puts a new key to use, unless an earlier rotation is not finished: then that one goes on.
 * @param keyFile where a new key is made if the key ring holds none that was not used; undefined where it cannot be written
 * @throws RingRefused where there is no new key
 */
export async function beginRotation(
  operator: Operator,
  keyFile: string | undefined,
): Promise<{ keyId: string; resumed: boolean }> {
  const { db, keys, clock } = operator.service;
  await checkKeyRing(db, keys);
  if (keys.inUse.length > 1) return { keyId: keys.current, resumed: true };
  const next = await findUnused(operator.service, keyFile);
  await db.transaction(async (tx) => {
    const [old] = await tx.query<{ key_id: string; activation: number }>(supersede(clock()));
    if (!old) throw new RingRefused('another rotation has just begun: run this again to join it');
    await tx.query(insertRingKey(next.keyId, next.check, old.activation + 1));
    const before = { keyId: old.key_id };
    const after = { keyId: next.keyId };
    await audit(tx, operator, { action: 'keys.rotate', subject: 'key ring', before, after });
  });
  await checkKeyRing(db, keys);
  return { keyId: keys.current, resumed: false };
}

async function findUnused({ db, keys }: Service, keyFile: string | undefined) {
  const rows = await db.query<RingRow>(listRingKeys());
  const find = () => keys.checks().find(({ keyId }) => !rows.some(({ key_id }) => key_id === keyId));
  const found = find();
  if (found) return found;
  if (keyFile !== undefined && keys.holds(await addToKeyFile(keyFile))) return find() as NonNullable<typeof found>;
  throw new RingRefused(
    'SCRIP_KEYS holds no key that was not used yet: make one (`scrip keys make`), put it in front in every process, and run this again',
  );
}

/** How many vouchers there are to look at. */
export async function countAll(db: Queries): Promise<number> {
  const [row] = await db.query<{ vouchers: bigint }>(countVouchers());
  return Number(row?.vouchers ?? 0);
}

/**
 * Seals everything anew under the key in use, proves that nothing is left under another one, and retires those before it.
 * @returns the ids of the keys that were retired; undefined where it was stopped, to be gone on with later
 */
export async function finishRotation(
  operator: Operator,
  reseal: Watch,
  prove: Watch,
): Promise<readonly string[] | undefined> {
  const { service } = operator;
  const { db, keys, clock } = service;
  if (!(await resealVouchers(service, reseal))) return undefined;
  await resealSecrets(service);
  const left = await countLeftBehind(service, prove);
  if (left === undefined) return undefined;
  if (left > 0) throw new Error(`${left} vouchers are not under the key in use, though all were sealed anew`);
  return db.transaction(async (tx) => {
    await tx.query(endProgress(keys.current, clock()));
    const retired = (await tx.query<{ key_id: string }>(retireOlder(keys.current, clock()))).map((row) => row.key_id);
    if (retired.length > 0)
      await audit(tx, operator, {
        action: 'keys.retire',
        subject: 'key ring',
        after: { keyId: keys.current, retired },
      });
    return retired;
  });
}

/**
 * Lets the key ring go without a key. That nothing depends on it is not noted anywhere but looked up: every voucher is opened and
 * compared, every secret looked at.
 * @returns whether it was done; false where it was stopped
 * @throws RingRefused where something depends on it
 */
export async function dropKey(operator: Operator, keyId: string, prove: Watch): Promise<boolean> {
  const { service } = operator;
  const { db, clock } = service;
  const row = (await db.query<RingRow>(listRingKeys())).find(({ key_id }) => key_id === keyId);
  if (!row) throw new RingRefused(`there is no key ${keyId} that was ever in use`);
  if (row.dropped_at) throw new RingRefused(`${keyId} was dropped already`);
  if (!row.retired_at) throw new RingRefused(`${keyId} is ${stateOf(row)}: \`scrip keys rotate\` replaces it`);
  const secrets = (await countSecrets(db)).get(keyId) ?? 0;
  if (secrets > 0) throw new RingRefused(`${secrets} webhook secrets are sealed under ${keyId}`);
  await checkKeyRing(db, service.keys);
  const left = await countLeftBehind(service, prove);
  if (left === undefined) return false;
  if (left > 0)
    throw new RingRefused(`${left} vouchers are not under the key in use: \`scrip keys rotate\` finishes that`);
  await db.transaction(async (tx) => {
    if ((await tx.query(dropRetired(keyId, clock()))).length === 0)
      throw new RingRefused(`${keyId} was dropped already`);
    await audit(tx, operator, { action: 'keys.drop', subject: 'key ring', before: { keyId } });
  });
  return true;
}
