import type { Service } from '../context.ts';
import { ownerOfTotp } from '../credentials.ts';
import { retrying } from '../db/errors.ts';
import type { Queries } from '../db/pool.ts';
import { bytesArray, plainArray, raw, type Sql, sql } from '../db/sql.ts';
import { type LookUp, sealedUnder } from '../keyring/ring.ts';
import { holdKeyRing } from '../keyring/store.ts';
import { ownerOf } from '../webhooks/endpoints.ts';

function listSealed(bucket: number, after: bigint, count: number): Sql {
  return sql`
select serial_number as "serialNumber", sealed, code_key as "codeKey", pin_key as "pinKey" from vouchers
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

/** The number of vouchers in a transaction. It holds their locks for some milliseconds. */
const CHUNK = 500;
/** The number of vouchers that one statement counts or reads. */
const PAGE = 20_000;
const READ = 2_000;

/** The reason why the key ring cannot be changed, in words for the operator. */
export class RingRefused extends Error {}

type Row = LookUp & { readonly serialNumber: bigint; readonly sealed: Buffer };

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
  const [progress] = await db.query<{ to: bigint }>(
    sql`select resealed_to as "to" from keyring_rotations where key_id = ${target} and bucket = ${bucket}`,
  );
  for (let after = progress?.to ?? 0n; ; ) {
    const rows = await db.query<Row>(listSealed(bucket, after, CHUNK));
    const due = rows.filter((row) => !isUnderCurrent(service, row));
    after = rows.at(-1)?.serialNumber ?? after;
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
  const opened = rows.map((row) => ({ ...row, ...keys.open(row.serialNumber, row.sealed) }));
  return {
    serials: plainArray(rows.map(({ serialNumber }) => serialNumber)),
    before: bytesArray(rows.map(({ sealed }) => sealed)),
    sealed: bytesArray(opened.map(({ serialNumber, code, pin }) => keys.seal(serialNumber, code, pin))),
    codeKeys: plainArray(opened.map(({ code }) => keys.codeKey(code))),
    pinKeys: plainArray(opened.map(({ code, pin }) => keys.pinKey(code, pin))),
  };
}

/**
 * Whether a voucher is sealed and found under the newest key. The voucher is opened to prove it; recorded
 * progress does not count.
 */
function isUnderCurrent({ keys }: Service, { serialNumber, sealed, codeKey, pinKey }: Row): boolean {
  if (sealedUnder(sealed) !== keys.current) return false;
  const { code, pin } = keys.open(serialNumber, sealed);
  const plain = (uuid: string) => uuid.replaceAll('-', '');
  return plain(codeKey) === keys.codeKey(code) && plain(pinKey) === keys.pinKey(code, pin);
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
      after = rows.at(-1)?.serialNumber ?? after;
    }
  }
  return left;
}

/** Reads in SQL which key sealed the bytes of a column, as `sealedUnder` does. */
const keyIdOf = (column: string) =>
  raw(`convert_from(substring(${column} from 2 for get_byte(${column}, 0)), 'LATIN1')`);

/** Counts the vouchers by the key that sealed them. */
export async function countSealed({ db, buckets }: Service): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  for (const bucket of buckets.all) {
    for (let after = 0n; ; ) {
      // The vouchers of a page by the key that sealed them, and the end of the page.
      const rows = await db.query<{ keyId: string; vouchers: number; last: bigint }>(sql`
select ${keyIdOf('sealed')} as "keyId", count(*)::int as vouchers, max(serial_number) as last
from (
  select serial_number, sealed from vouchers
  where bucket = ${bucket} and serial_number > ${after} order by serial_number limit ${PAGE}
) p
group by 1`);
      for (const { keyId, vouchers, last } of rows) {
        counts.set(keyId, (counts.get(keyId) ?? 0) + vouchers);
        if (last > after) after = last;
      }
      if (rows.length === 0) break;
    }
  }
  return counts;
}

type Secrets = {
  /** In messages. */
  readonly what: string;
  readonly table: string;
  /** What moves from one column to the next is found in either: a newer secret comes first. */
  readonly columns: readonly string[];
  /** Returns the owner to whom the secret of a row is bound. */
  ownerOf(id: number): string;
};

/** Includes the secrets of removed endpoints, so that all dependencies on a key are found. */
export const WEBHOOK_SECRETS: Secrets = {
  what: 'webhook secrets',
  table: 'webhook_endpoints',
  columns: ['secret', 'previous_secret'],
  ownerOf,
};

/** The secrets that are sealed, besides the codes and PINs of vouchers. */
export const ALL_SECRETS: readonly Secrets[] = [
  WEBHOOK_SECRETS,
  {
    what: 'secrets of authenticator apps',
    table: 'users',
    columns: ['totp_secret'],
    ownerOf: ownerOfTotp,
  },
];

/** Seals secrets under the newest key, each in a transaction of its own. */
export async function resealSecrets(service: Service, { table, columns, ownerOf }: Secrets): Promise<void> {
  const { db, keys } = service;
  const [from, owned] = [raw(table), columns.map(raw)];
  for (const column of owned) {
    const rows = await db.query<{ id: number }>(sql`select id from ${from} where ${column} is not null`);
    for (const { id } of rows)
      await db.transaction(async (tx) => {
        await holdKeyRing(tx, keys);
        const [row] = await tx.query<{ sealed: Buffer | null }>(
          sql`select ${column} as sealed from ${from} where id = ${id} for update`,
        );
        if (!row?.sealed || sealedUnder(row.sealed) === keys.current) return;
        const resealed = keys.sealText(ownerOf(id), keys.openText(ownerOf(id), row.sealed));
        await tx.query(sql`update ${from} set ${column} = ${resealed} where id = ${id}`);
      });
  }
}

/** Counts secrets by the key that sealed them. */
export async function countSecrets(db: Queries, { table, columns }: Secrets): Promise<Map<string, number>> {
  const rows = await db.query<{ keyId: string; count: number }>(sql`
select ${keyIdOf('sealed')} as "keyId", count(*)::int as count
from ${raw(table)} cross join unnest(array[${raw(columns.join(', '))}]) s (sealed)
where sealed is not null group by 1`);
  return new Map(rows.map(({ keyId, count }) => [keyId, count]));
}
