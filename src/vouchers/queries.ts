import { type HotStatement, type Sql, sql, textArray } from '../db/sql.ts';
import type { LookUp } from '../keyring/ring.ts';

/** Decides and books a list of activations: sql/007-activate.sql. */
export const ACTIVATE: HotStatement = {
  name: 'activate',
  text: 'select * from activate($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)',
};

/** The functions of sql/010-balance.sql. */
export const READ_BALANCES: HotStatement = {
  name: 'read-balances',
  text: 'select * from read_balances($1, $2, $3, $4, $5, $6)',
};

export const CHECK_PINS: HotStatement = {
  name: 'check-pins',
  text: 'select * from check_pins($1, $2, $3, $4)',
};

export function readLongBalance(
  bucket: number,
  merchantId: number,
  { codeKey, pinKey }: LookUp,
  entries: number,
  now: Date,
): Sql {
  return sql`
select * from read_long_balance(${bucket}, ${merchantId}, ${codeKey}, ${pinKey}, ${entries}, ${now})`;
}

/** The number of entries of a voucher's history that the operator sees. */
const HISTORY = 100;

/** Finds a voucher for the operator (sql/019-operator.sql). A voucher of an incomplete batch is not found. */
export function findVoucher(bucket: number, serialNumber: bigint, now: Date): Sql {
  return sql`
select v.*,
  voucher_state(v.closed, v.blocked_at, v.expires_at, v.activated_at, v.balance_minor, ${now}) as state
from show_voucher(${bucket}, ${serialNumber}) v`;
}

export function listVoucherEntries(bucket: number, serialNumber: bigint): Sql {
  return sql`select * from list_voucher_entries(${bucket}, ${serialNumber}, ${HISTORY})`;
}

/** Lists the payments of a voucher's expired money to a state, newest first. */
export function listEscheats(serialNumber: bigint, limit: number): Sql {
  return sql`
select escheat_id, max(escheated_at) as at from escheated_expiries
where serial_number = ${serialNumber} group by escheat_id order by at desc limit ${limit}`;
}

/** Locks a voucher until the transaction ends. */
export function lockVoucher(bucket: number, serialNumber: bigint): Sql {
  return sql`select * from lock_voucher(${bucket}, ${serialNumber})`;
}

export function setBlock(bucket: number, serialNumber: bigint, blockedAt: Date | null): Sql {
  return sql`select set_voucher_block(${bucket}, ${serialNumber}, ${blockedAt})`;
}

export function resetPin(bucket: number, serialNumber: bigint): Sql {
  return sql`select reset_voucher_pin(${bucket}, ${serialNumber})`;
}

/** @param id of the change, which begins with its time */
export function setExpiry(bucket: number, serialNumber: bigint, expiresAt: Date, id: string, now: Date): Sql {
  return sql`select set_voucher_expiry(${bucket}, ${serialNumber}, ${expiresAt}, ${id}, ${now})`;
}

type PriceMove = {
  readonly bucket: number;
  readonly serialNumber: bigint;
  readonly id: string;
  readonly now: Date;
};

/** Cancels an inactive voucher, and returns its price (sql/015-booking.sql). */
export function cancelInactive({ bucket, serialNumber, id, now }: PriceMove): Sql {
  return sql`
select outcome, released_minor from cancel_inactive(${bucket}, ${serialNumber}, ${id}, ${now})`;
}

/** Takes the price of an inactive voucher again, after its expiry gave it back (sql/015-booking.sql). */
export function reservePrice(move: PriceMove & { readonly eventId: string }): Sql {
  const { bucket, serialNumber, id, eventId, now } = move;
  return sql`
select outcome, taken_minor from reserve_again(${bucket}, ${serialNumber}, ${id}, ${eventId}, ${now})`;
}

export function drawNumber(): Sql {
  return sql`select nextval('voucher_numbers') as number`;
}

/** Returns those of these code keys that exist already. */
export function findCodeKeys(codeKeys: string): Sql {
  return sql`select from find_code_keys(${codeKeys}::uuid[])`;
}

export type Replacement = {
  readonly serialNumber: bigint;
  readonly codeKey: string;
  readonly pinKey: string;
  readonly sealed: Buffer;
  /** The id of the movement from the old voucher to the new one. */
  readonly entryId: string;
};

/** Replaces a voucher. `done` is false if the new code exists. */
export function replaceBy(bucket: number, replaced: bigint, by: Replacement, now: Date): Sql {
  return sql`
select replace_voucher(${bucket}, ${replaced}, ${by.serialNumber}, ${by.codeKey}::uuid, ${by.pinKey}::uuid,
  ${by.sealed}::bytea, ${by.entryId}::uuid, ${now}) as done`;
}

/** The vouchers that are read for one page of a list with a state: a page may have fewer than its limit. */
export const SCAN_MAX = 5_000;

/** The state of a voucher (sql/005-rules.sql); $1 is the time. */
const STATE =
  'voucher_state(v.closed, v.blocked_at, v.expires_at, v.activated_at, v.balance_minor, $1::timestamptz)';

const COLUMNS = `
  v.serial_number, v.sealed, v.value_minor, v.balance_minor, v.activated_at, v.expires_at, v.blocked_at,
  v.replaced_by, ${STATE} as state, b.merchant_id, b.transaction_id, b.currency, b.decimals,
  p.code as product`;

const OWNERS = `
join batches b on b.id = v.batch_id and b.status = 'COMPLETED'
join products p on p.id = b.product_id`;

/**
 * Lists vouchers by ranges of the keys of their codes. Materialized: otherwise the planner might read all
 * vouchers in the order of the list.
 */
export function listByCodeRanges(
  ranges: readonly { readonly first: string; readonly last: string }[],
  now: Date,
  limit: number,
): Sql {
  const values: unknown[] = [now, limit];
  const conditions = ranges.map(
    ({ first, last }) => `r.code_key between $${values.push(first)}::uuid and $${values.push(last)}::uuid`,
  );
  return {
    text: `
      with found as materialized (select r.* from vouchers r where ${conditions.join(' or ')})
      select ${COLUMNS} from found v ${OWNERS} order by v.serial_number limit $2`,
    values,
  };
}

/** Lists vouchers by their serial numbers. */
export function listBySerials(serials: string, now: Date): Sql {
  return {
    text: `
      select ${COLUMNS} from vouchers v ${OWNERS}
      where v.serial_number = any ($2::bigint[]) order by v.serial_number`,
    values: [now, serials],
  };
}

/**
 * Sums up vouchers that are not closed, batch by batch: their balances, and the prices of those that are not
 * active, whether a float holds one in reserve or got it back.
 */
export function sumBySerials(serials: string): Sql {
  return sql`
select b.merchant_id, m.name as merchant, b.transaction_id, b.reference, b.currency, b.decimals,
  count(*)::integer as vouchers, sum(v.balance_minor)::bigint as balance_minor,
  coalesce(sum(b.value_minor) filter (where v.activated_at is null and v.payer_id is not null), 0)::bigint
    as reserved_minor,
  coalesce(sum(b.value_minor) filter (where v.activated_at is null and v.payer_id is null), 0)::bigint
    as released_minor
from vouchers v join batches b on b.id = v.batch_id join merchants m on m.id = b.merchant_id
where v.serial_number = any (${serials}::bigint[]) and v.closed is null
group by b.id, m.id order by b.id`;
}

/** Sums up, by currency, the expired amounts of vouchers that were not given back. */
export function sumExpired(serials: string): Sql {
  return sql`
select b.currency, sum(j.amount_minor)::bigint as expired_minor
from vouchers v join batches b on b.id = v.batch_id
join journal j on j.bucket = v.bucket and j.serial_number = v.serial_number and j.kind = 'EXPIRY'
where v.serial_number = any (${serials}::bigint[]) and v.closed is null
  and not exists (
    select from journal r where r.bucket = j.bucket and r.serial_number = j.serial_number
      and r.kind = 'REINSTATEMENT' and r.original_id = j.id
  )
group by b.currency`;
}

/**
 * Lists the next vouchers of a batch, or of all batches, after a serial number. It reads at most SCAN_MAX,
 * and returns those in the state, or in any. Each row contains the serial number of the last one that was
 * read.
 */
export function listVoucherRows(
  batchId: number | null,
  state: string | null,
  after: bigint,
  now: Date,
  limit: number,
): Sql {
  const values: unknown[] = [now, state, after, limit];
  const ofBatch = batchId === null ? '' : `and r.batch_id = $${values.push(batchId)}`;
  const scanned = state === null ? '$4' : String(SCAN_MAX);
  return {
    text: `
with scanned as materialized (
  select r.* from vouchers r where r.serial_number > $3 ${ofBatch} order by r.serial_number limit ${scanned}
), seen as (
  select max(serial_number) as last, count(*) as count from scanned
)
select s.last as scanned_to, s.count as scanned, f.*
from seen s
left join lateral (
  select ${COLUMNS} from scanned v ${OWNERS}
  where $2::text is null or ${STATE} = $2
  order by v.serial_number limit $4
) f on true`,
    values,
  };
}

/** Finds the vouchers of a merchant's reference: that of its redemption and that of its activation. */
export function findClaimed(merchantId: number, reference: string): Sql {
  return sql`
select operation, serial_number, id from claims
where merchant_id = ${merchantId} and reference = ${reference}
  and operation in ('redeem', 'activate', 'generate')`;
}

/** Finds the voucher of a journal row. */
export function findOfTransaction(id: string): Sql {
  return sql`select serial_number, batch_id from journal where id = ${id}::uuid`;
}

/**
 * Inserts declines, in columns of equal length. A voucher is found by one of two keys of its code, or is
 * given.
 */
export function insertDeclines(columns: {
  readonly ids: string;
  readonly serials: string;
  readonly codeKeys: string;
  readonly olderKeys: string;
  readonly merchants: string;
  readonly keyIds: string;
  readonly operations: string;
  readonly codes: string;
  readonly amounts: string;
  readonly references: string;
}): Sql {
  const { ids, serials, codeKeys, olderKeys, merchants, keyIds, operations, codes, amounts, references } =
    columns;
  return sql`
with found as materialized (
  select r.code_key, r.serial_number from vouchers r
  where r.code_key = any (${codeKeys}::uuid[] || ${olderKeys}::uuid[])
)
insert into declines (id, serial_number, merchant_id, key_id, operation, code, amount_units, reference)
select u.id, coalesce(u.serial_number, v.serial_number, o.serial_number), u.merchant_id, u.key_id,
  u.operation, u.code, u.amount_units, u.reference
from unnest(${ids}::uuid[], ${serials}::bigint[], ${codeKeys}::uuid[], ${olderKeys}::uuid[],
  ${merchants}::int[], ${keyIds}::text[], ${operations}::text[], ${codes}::text[], ${amounts}::bigint[],
  ${references}::text[])
  as u (id, serial_number, code_key, older_key, merchant_id, key_id, operation, code, amount_units, reference)
left join found v on v.code_key = u.code_key
left join found o on o.code_key = u.older_key`;
}

/** Lets a transaction end before it is on disk, so that commits of tills do not wait for its flush. */
export const commitWithoutWaiting = sql`set local synchronous_commit = off`;

/** Adds to the counts of days. The parameters are columns of equal length. */
export function addDeclineCounts(days: string, codes: string, counts: string): Sql {
  return sql`
insert into decline_counts as c (day, code, declines)
select u.day, u.code, u.declines
from unnest(${days}::date[], ${codes}::text[], ${counts}::bigint[]) as u (day, code, declines)
order by u.day, u.code
on conflict (day, code) do update set declines = c.declines + excluded.declines`;
}

/** Counts declines from one UTC day to another, by code, the most frequent first. */
export function sumDeclineCounts(from: string, to: string): Sql {
  return sql`
select code, sum(declines)::bigint as declines from decline_counts
where day >= ${from}::date and day <= ${to}::date
group by code order by declines desc, code`;
}

/** Lists the newest declines of a voucher. */
export function listVoucherDeclines(serialNumber: bigint, limit: number): Sql {
  return sql`
select id, merchant_id, key_id, operation, code, amount_units, reference from declines
where serial_number = ${serialNumber} order by id desc limit ${limit}`;
}

/** Lists the currencies of vouchers. */
export function listCurrencies(serials: string): Sql {
  return sql`
select v.serial_number, b.currency from vouchers v join batches b on b.id = v.batch_id
where v.serial_number = any (${serials}::bigint[])`;
}

/**
 * Lists a page of declines, newest first, before an id; of one merchant or all, of one voucher or all.
 * @param without the codes that are left out
 */
export function listDeclineRows(
  merchantId: number | null,
  serialNumber: bigint | null,
  without: readonly string[],
  before: string,
  limit: number,
): Sql {
  const values: unknown[] = [before, limit];
  const conditions = ['id < $1::uuid'];
  if (merchantId !== null) conditions.push(`merchant_id = $${values.push(merchantId)}`);
  if (serialNumber !== null) conditions.push(`serial_number = $${values.push(serialNumber)}`);
  if (without.length > 0) conditions.push(`code <> all ($${values.push(textArray(without))}::text[])`);
  const columns = 'id, serial_number, merchant_id, key_id, operation, code, amount_units, reference';
  return {
    text: `select ${columns} from declines where ${conditions.join(' and ')} order by id desc limit $2`,
    values,
  };
}

/** Drops the oldest month of declines that are no longer kept. Returns it, or null. */
export function dropOldDeclines(before: Date): Sql {
  return sql`select drop_old_declines(${before}) as month`;
}
