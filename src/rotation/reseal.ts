import type { Service } from '../context.ts';
import { ownerOfTotp } from '../credentials.ts';
import { retrying } from '../db/errors.ts';
import type { Queries } from '../db/pool.ts';
import { bytesArray, plainArray, type Sql, sql } from '../db/sql.ts';
import { sealedUnder } from '../keyring/ring.ts';
import { holdKeyRing } from '../keyring/store.ts';
import { ownerOf } from '../webhooks/endpoints.ts';

function listSealed(bucket: number, after: bigint, count: number): Sql {
  return sql`
select serial_number, sealed, code_key, pin_key from vouchers
where bucket = ${bucket} and serial_number > ${after} order by serial_number limit ${count}`;
}

/**
 * Writes vouchers of a bucket that were sealed under another key (sql/012-vouchers.sql). The parameters are
 * columns of equal length.
 */
export function resealVouchers(
  bucket: number,
  columns: {
    readonly serials: string;
    readonly before: string;
    readonly sealed: string;
    readonly codeKeys: string;
    readonly pinKeys: string;
  },
): Sql {
  const { serials, before, sealed, codeKeys, pinKeys } = columns;
  return sql`
select reseal_vouchers(${bucket}, ${serials}::bigint[], ${before}::bytea[], ${sealed}::bytea[],
  ${codeKeys}::uuid[], ${pinKeys}::uuid[])`;
}

/** Lists every secret, including those of removed endpoints, so that all dependencies on a key are found. */
function listSecrets(): Sql {
  return sql`select id, secret, previous_secret from webhook_endpoints order by id`;
}

/** Lists the secret of every authenticator app. */
function listTotpSecrets(): Sql {
  return sql`select id, totp_secret as secret from users where totp_secret is not null order by id`;
}

/** The number of vouchers in a transaction. It holds their locks for some milliseconds. */
const CHUNK = 500;
/** The number of vouchers that one statement counts or reads. */
const PAGE = 20_000;
const READ = 2_000;

/** The reason why the key ring cannot be changed, in words for the operator. */
export class RingRefused extends Error {}

type Row = { serial_number: bigint; sealed: Buffer; code_key: string; pin_key: string };

/** Called after each chunk with the number of its vouchers. @returns whether to stop */
export type OnProgress = (vouchers: number) => boolean;

/**
 * Seals every voucher under the newest key. The sealed bytes and the values for code and PIN change in one
 * update. It continues where an earlier run was interrupted. New vouchers use that key from the start.
 * @returns whether it reached the end
 */
export async function resealAll(service: Service, onProgress: OnProgress): Promise<boolean> {
  for (const bucket of service.buckets.all)
    if (!(await resealBucket(service, bucket, onProgress))) return false;
  return true;
}

async function resealBucket(service: Service, bucket: number, onProgress: OnProgress): Promise<boolean> {
  const { db, keys, clock } = service;
  const target = keys.current;
  await db.query(sql`
insert into keyring_rotations (key_id, bucket, started_at) values (${target}, ${bucket}, ${clock()})
on conflict do nothing`);
  const [progress] = await db.query<{ resealed_to: bigint }>(
    sql`select resealed_to from keyring_rotations where key_id = ${target} and bucket = ${bucket}`,
  );
  for (let after = progress?.resealed_to ?? 0n; ; ) {
    const rows = await db.query<Row>(listSealed(bucket, after, CHUNK));
    const due = rows.filter((row) => !isUnderCurrent(service, row));
    after = rows.at(-1)?.serial_number ?? after;
    await retrying(() =>
      db.transaction(async (tx) => {
        await holdKeyRing(tx, keys);
        // A voucher must never return to an older key. Another rotation has its own run.
        if (keys.current !== target)
          throw new RingRefused(`another key than ${target} has been put to use meanwhile: run this again`);
        if (due.length > 0) await tx.query(resealVouchers(bucket, resealed(service, due)));
        await tx.query(sql`
update keyring_rotations set resealed_to = greatest(resealed_to, ${after})
where key_id = ${target} and bucket = ${bucket}`);
      }),
    );
    if (onProgress(rows.length)) return false;
    if (rows.length < CHUNK) return true;
  }
}

function resealed({ keys }: Service, rows: readonly Row[]): Parameters<typeof resealVouchers>[1] {
  const opened = rows.map((row) => ({ ...row, ...keys.open(row.serial_number, row.sealed) }));
  return {
    serials: plainArray(rows.map(({ serial_number }) => serial_number)),
    before: bytesArray(rows.map(({ sealed }) => sealed)),
    sealed: bytesArray(opened.map(({ serial_number, code, pin }) => keys.seal(serial_number, code, pin))),
    codeKeys: plainArray(opened.map(({ code }) => keys.codeKey(code))),
    pinKeys: plainArray(opened.map(({ code, pin }) => keys.pinKey(code, pin))),
  };
}

/**
 * Whether a voucher is sealed and found under the newest key. The voucher is opened to prove it; recorded
 * progress does not count.
 */
function isUnderCurrent({ keys }: Service, { serial_number, sealed, code_key, pin_key }: Row): boolean {
  if (sealedUnder(sealed) !== keys.current) return false;
  const { code, pin } = keys.open(serial_number, sealed);
  const plain = (uuid: string) => uuid.replaceAll('-', '');
  return plain(code_key) === keys.codeKey(code) && plain(pin_key) === keys.pinKey(code, pin);
}

/**
 * Counts the vouchers that are not under the newest key. Each is opened and compared. Undefined if it was
 * stopped.
 */
export async function countLeftBehind(service: Service, onProgress: OnProgress): Promise<number | undefined> {
  let left = 0;
  for (const bucket of service.buckets.all) {
    for (let [after, isWhole] = [0n, false]; !isWhole; ) {
      const rows = await service.db.query<Row>(listSealed(bucket, after, READ));
      left += rows.filter((row) => !isUnderCurrent(service, row)).length;
      if (onProgress(rows.length)) return undefined;
      isWhole = rows.length < READ;
      after = rows.at(-1)?.serial_number ?? after;
    }
  }
  return left;
}

/** Counts the vouchers by the key that sealed them. */
export async function countSealed({ db, buckets }: Service): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  for (const bucket of buckets.all) {
    for (let after = 0n; ; ) {
      // The vouchers of a page by the key that sealed them, and the end of the page.
      const rows = await db.query<{ key_id: string; vouchers: bigint; last: bigint }>(
        sql`
select convert_from(substring(p.sealed from 2 for get_byte(p.sealed, 0)), 'LATIN1') as key_id,
  count(*) as vouchers, max(p.serial_number) as last
from (
  select serial_number, sealed from vouchers
  where bucket = ${bucket} and serial_number > ${after} order by serial_number limit ${PAGE}
) p
group by 1`,
      );
      for (const { key_id, vouchers, last } of rows) {
        counts.set(key_id, (counts.get(key_id) ?? 0) + Number(vouchers));
        if (last > after) after = last;
      }
      if (rows.length === 0) break;
    }
  }
  return counts;
}

type SecretRow = { id: number; secret: Buffer; previous_secret: Buffer | null };

const secretsOf = ({ secret, previous_secret }: SecretRow) =>
  previous_secret ? [secret, previous_secret] : [secret];

/** Seals the secrets of all endpoints under the newest key, in one transaction for each endpoint. */
export async function resealSecrets({ db, keys }: Service): Promise<void> {
  for (const { id } of await db.query<SecretRow>(listSecrets())) {
    await db.transaction(async (tx) => {
      await holdKeyRing(tx, keys);
      const [row] = await tx.query<SecretRow>(
        sql`select id, secret, previous_secret from webhook_endpoints where id = ${id} for update`,
      );
      if (!row || secretsOf(row).every((sealed) => sealedUnder(sealed) === keys.current)) return;
      const reseal = (sealed: Buffer) => keys.sealText(ownerOf(id), keys.openText(ownerOf(id), sealed));
      await tx.query(
        sql`
update webhook_endpoints set secret = ${reseal(row.secret)},
  previous_secret = ${row.previous_secret && reseal(row.previous_secret)}
where id = ${id}`,
      );
    });
  }
}

/** Counts the secrets of endpoints by the key that sealed them. */
export async function countSecrets(db: Queries): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  for (const row of await db.query<SecretRow>(listSecrets())) {
    for (const sealed of secretsOf(row))
      counts.set(sealedUnder(sealed), (counts.get(sealedUnder(sealed)) ?? 0) + 1);
  }
  return counts;
}

type TotpRow = { id: number; secret: Buffer };

/** Seals the secrets of all authenticator apps under the newest key, in one transaction for each user. */
export async function resealTotpSecrets({ db, keys }: Service): Promise<void> {
  for (const { id } of await db.query<TotpRow>(listTotpSecrets())) {
    await db.transaction(async (tx) => {
      await holdKeyRing(tx, keys);
      const [row] = await tx.query<TotpRow>(sql`
    select id, totp_secret as secret from users where id = ${id} and totp_secret is not null for update`);
      if (!row || sealedUnder(row.secret) === keys.current) return;
      const secret = keys.openText(ownerOfTotp(id), row.secret);
      await tx.query(
        sql`update users set totp_secret = ${keys.sealText(ownerOfTotp(id), secret)} where id = ${id}`,
      );
    });
  }
}

/** Counts the secrets of authenticator apps by the key that sealed them. */
export async function countTotpSecrets(db: Queries): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  for (const { secret } of await db.query<TotpRow>(listTotpSecrets()))
    counts.set(sealedUnder(secret), (counts.get(sealedUnder(secret)) ?? 0) + 1);
  return counts;
}
