import { type Sql, sql } from '../db/sql.ts';

/** Vouchers looked through for one page of a list with a state: a page may hold fewer than its limit. */
export const SCAN_MAX = 5_000;

/**
 * The states of a voucher, as conditions on its row; $1 is the time. The order is that in which a
 * redemption is refused.
 */
const STATES = `
case when v.closed is not null then v.closed::text
  when v.blocked_at is not null then 'BLOCKED'
  when v.expires_at <= $1::timestamptz then 'EXPIRED'
  when v.activated_at is null then 'INACTIVE'
  when v.balance_minor = 0 then 'REDEEMED'
  else 'ACTIVE' end`;

const COLUMNS = `
v.serial_number, v.sealed, v.value_minor, v.balance_minor, v.activated_at, v.expires_at, v.blocked_at,
v.replaced_by, ${STATES} as state,
  b.merchant_id, b.transaction_id, b.currency, b.decimals, p.code as product`;

const OWNERS = `
join batches b on b.id = v.batch_id and b.status = 'COMPLETED'
join products p on p.id = b.product_id`;

/**
 * Vouchers by the keys of their codes. Materialized: the planner cannot know that most of ten thousand keys
 * are of no voucher, and would look through all vouchers in the order of the list.
 */
export function listByCodeKeys(codeKeys: string, now: Date, limit: number): Sql {
  return {
    text: `
      with found as materialized (select r.* from vouchers r where r.code_key = any ($2::uuid[]))
      select ${COLUMNS} from found v ${OWNERS} order by v.serial_number limit $3`,
    values: [now, codeKeys, limit],
  };
}

/** Vouchers by their serial numbers. */
export function listBySerials(serials: string, now: Date): Sql {
  return {
    text: `
      select ${COLUMNS} from vouchers v ${OWNERS} where v.serial_number = any ($2::bigint[])
      order by v.serial_number`,
    values: [now, serials],
  };
}

/**
 * The next vouchers of a batch, or of all batches, behind a serial number: at most SCAN_MAX are looked
 * at, and those in the state, or in any, are returned. Each row shows the last one that was read.
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
  where $2::text is null or ${STATES} = $2
  order by v.serial_number limit $4
) f on true`,
    values,
  };
}

/** The vouchers that a merchant's reference names: of its redemption, of its activation. */
export function findClaimed(merchantId: number, reference: string): Sql {
  return sql`
select operation, serial_number, id from claims
where merchant_id = ${merchantId} and reference = ${reference}
  and operation in ('redeem', 'activate', 'generate')`;
}

/** The voucher of a journal row. */
export function findOfTransaction(id: string): Sql {
  return sql`select serial_number, batch_id from journal where id = ${id}::uuid`;
}
