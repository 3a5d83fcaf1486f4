import type { Queries } from '../db/pool.ts';
import { readLong } from '../db/session.ts';
import { type Sql, sql } from '../db/sql.ts';
import { FIRST_RESERVE, FIRST_VOUCHER, kindOf } from './kinds.ts';
import { type Checks, EXAMPLES, isLater, type Since } from './reconcile.scope.ts';

/** The most floats that are checked again on several shards, where tills continue meanwhile. */
const CANDIDATES = 10_000;

/** Lists the two accounts that each journal row `j` changes. */
const SIDES = sql`
  select j.bucket, j.currency, j.serial_number, s.account, s.amount_minor
  from journal j
  cross join lateral (values (j.credit_account, j.amount_minor), (j.debit_account, -j.amount_minor))
    as s (account, amount_minor)`;

/** What the check of activations shows of a voucher. */
const ACTIVATED = sql`v.serial_number as "serialNumber", v.activated_at as "activatedAt",
    v.value_minor::text as "valueMinor", coalesce(a.activations, 0) as activations,
    a.amount_minor::text as "activationMinor"`;

/** What it counts of the voucher's rows. */
const COUNTED = sql`count(*) filter (where kind in ('ACTIVATION', 'IMPORT')) as activations,
      count(*) filter (where kind = 'REPLACEMENT') as replacements, sum(amount_minor) as amount_minor`;

/** Whether a voucher differs from what was counted (`a`). `p` is the voucher that it replaced. */
const NOT_ACTIVATED_ONCE = sql`case
      when p.serial_number is null
        then coalesce(a.activations, 0) <> (v.activated_at is not null)::int
          or coalesce(a.replacements, 0) > 0
          or v.value_minor is distinct from a.amount_minor
      else coalesce(a.activations, 0) <> (v.activated_at is not null and p.activated_at is null)::int
        or v.activated_at is not null and v.value_minor <> coalesce(a.amount_minor, 0)
        or p.activated_at is not null and v.activated_at is distinct from p.activated_at
        or v.activated_at is null and a.amount_minor is not null
    end`;

/**
 * Compares the stored balances of floats and vouchers with the journal, and every row of the journal with its
 * accounts.
 */
export const BALANCES: Checks = {
  // On several shards these are candidates: each is checked again while its float is locked (reconcile.ts).
  'float-balances': ({ quietBefore, since }) => ({
    given: sql`
opening as (
  select merchant_id, currency, balance_minor from book_balances
  where day = ${since.day}::date and account_kind = 'FLOAT'
), moved as (
  select s.account, sum(s.amount_minor) as amount_minor from (${SIDES} where ${isLater(since)}) s
  where s.account < ${FIRST_RESERVE} group by s.account
)`,
    checked: sql`select count(*) from floats`,
    differing: sql`
  select f.account_id as account, f.merchant_id as "merchantId", f.currency,
    f.balance_minor::text as "balanceMinor",
    (coalesce(o.balance_minor, 0) + coalesce(m.amount_minor, 0))::text as "journalMinor"
  from floats f
  left join moved m on m.account = f.account_id
  left join opening o on o.merchant_id = f.merchant_id and o.currency = f.currency
  where f.balance_minor <> coalesce(o.balance_minor, 0) + coalesce(m.amount_minor, 0)`,
    most: quietBefore === null ? EXAMPLES : CANDIDATES,
  }),

  // The full join also finds money on vouchers that do not exist.
  'voucher-balances': () => ({
    checked: sql`select count(*) from vouchers`,
    differing: sql`
  select coalesce(v.serial_number, m.account) as "serialNumber", v.balance_minor::text as "balanceMinor",
    coalesce(m.amount_minor, 0)::text as "journalMinor", b.currency, m.currency as "journalCurrency"
  from vouchers v
  full join (
    select s.bucket, s.account, sum(s.amount_minor) as amount_minor, min(s.currency) as currency,
      max(s.currency) as other_currency
    from (${SIDES}) s where s.account >= ${FIRST_VOUCHER} group by s.bucket, s.account
  ) m on m.bucket = v.bucket and m.account = v.serial_number
  left join batches b on b.id = v.batch_id
  where v.balance_minor is distinct from coalesce(m.amount_minor, 0)
    or m.currency <> m.other_currency or m.currency <> b.currency`,
  }),

  // One row moves one amount between two accounts, so it balances by itself if both accounts exist, have the
  // kinds that its own kind allows, and belong to its currency and its merchant. An activation is paid from
  // the reserve of its batch or, if the batch has none, from the float (on several shards, the transit
  // account). Any merchant may activate a voucher that its batch has paid for. Money that leaves a voucher
  // other than by a redemption goes to the float of its payer, and comes back from there. The price of a
  // single voucher moves without changing its balance. The check voucher-balances finds unknown vouchers.
  'journal-entries': ({ since }) => ({
    checked: sql`select count(*) from journal j where ${isLater(since)}`,
    differing: sql`
  select s.id as "transactionId", s.kind, s.debit_account as "debitAccount",
    s.credit_account as "creditAccount", s.debit as "debitKind", s.credit as "creditKind", s.currency
  from (
    select j.*, v.batch_id as voucher_batch, n.value_minor as batch_value,
      v.payer_id = j.merchant_id as is_payer, v.payer_id = n.merchant_id as is_paid_by_issuer,
      ${kindOf(sql`j.debit_account`, sql`d.kind::text`)} as debit,
      ${kindOf(sql`j.credit_account`, sql`c.kind::text`)} as credit,
      coalesce(d.currency, r.currency, j.currency) as debit_currency,
      coalesce(c.currency, r.currency, j.currency) as credit_currency,
      case
        when d.kind in ('FLOAT', 'SETTLEMENT') then d.merchant_id
        when c.kind in ('FLOAT', 'SETTLEMENT') then c.merchant_id
        when j.kind = 'ACTIVATION' and j.batch_id is null then j.merchant_id
        when j.kind = 'REPLACEMENT' then null
        else coalesce(r.merchant_id, j.merchant_id)
      end as owner,
      case
        when j.credit_account >= ${FIRST_VOUCHER} then j.credit_account
        when j.debit_account >= ${FIRST_VOUCHER} then j.debit_account
      end as voucher
    from journal j
    left join accounts d on d.id = j.debit_account
    left join accounts c on c.id = j.credit_account
    left join batches r on r.id = case
      when j.debit_account >= ${FIRST_RESERVE} and j.debit_account < ${FIRST_VOUCHER}
        then j.debit_account - ${FIRST_RESERVE}
      when j.credit_account >= ${FIRST_RESERVE} and j.credit_account < ${FIRST_VOUCHER}
        then j.credit_account - ${FIRST_RESERVE}
    end
    left join vouchers v on v.bucket = j.bucket and v.serial_number = j.serial_number
    left join batches n on n.id = v.batch_id
    where ${isLater(since)}
  ) s
  where is_movement(s.kind::text, s.debit, s.credit) is not true
    or case s.kind
      when 'RESERVATION' then s.credit_account = reserve_of(s.batch_id)
      when 'RELEASE' then s.debit_account = reserve_of(s.batch_id)
      when 'VOID' then s.credit_account = reserve_of(s.voucher_batch)
      when 'ACTIVATION' then case
        when s.batch_value is null then s.debit in ('FLOAT', 'TRANSIT') and s.is_payer is not false
        else s.debit_account = reserve_of(s.voucher_batch) and s.is_paid_by_issuer is not false
      end
      when 'IMPORT' then s.is_payer is not false
      when 'CANCELLATION' then s.is_payer is not false
      when 'EXPIRY' then s.credit <> 'FLOAT' or s.is_payer is not false
      when 'REINSTATEMENT' then s.debit <> 'FLOAT' or s.is_payer is not false
      else true
    end is not true
    or s.amount_minor <= 0 or s.debit_account = s.credit_account
    or s.currency <> s.debit_currency or s.currency <> s.credit_currency
    or s.merchant_id is distinct from s.owner
    or s.serial_number is distinct from case
      when s.kind in ('RESERVATION', 'RELEASE') and s.voucher_batch = s.batch_id then s.serial_number
      else s.voucher
    end`,
  }),

  // A voucher is activated or imported once, with its value, or has taken over the value of the voucher that
  // it replaced.
  activations: () => ({
    checked: sql`select count(*) from vouchers`,
    differing: sql`
  select ${ACTIVATED}
  from vouchers v
  left join (
    select bucket, serial_number, ${COUNTED}
    from journal where kind in ('ACTIVATION', 'IMPORT', 'REPLACEMENT') group by bucket, serial_number
  ) a on a.bucket = v.bucket and a.serial_number = v.serial_number
  left join vouchers p on p.bucket = v.bucket and p.replaced_by = v.serial_number
  where ${NOT_ACTIVATED_ONCE}`,
  }),

  // The reserve of a batch, in each bucket: it has paid the amounts with which the batch's vouchers were
  // activated, and the price of each voucher whose price went back separately. A canceled batch has received
  // all value that its vouchers no longer have. What a sweep gave back in one sum belongs to no bucket: it is
  // the price of the vouchers that the sweep found inactive.
  'reserve-shares': ({ quietBefore, now }) => ({
    given: sql`
shares as materialized (
  select v.batch_id, v.bucket, v.taken_minor, coalesce(m.amount_minor, 0) as amount_minor
  from (
    select n.bucket, n.batch_id,
      case
        when c.status = 'CANCELED' then coalesce(sum(n.balance_minor) filter (where n.closed is null), 0)
        else c.value_minor * count(*) filter (
          where n.closed is distinct from 'REPLACED' and (n.activated_at is not null or n.payer_id is null))
      end as taken_minor
    from vouchers n join batches c on c.id = n.batch_id and c.value_minor is not null
    group by n.bucket, n.batch_id, c.status, c.value_minor
  ) v
  left join (
    select s.bucket, s.account, -sum(s.amount_minor) as amount_minor
    from (${SIDES}) s
    where s.account >= ${FIRST_RESERVE} and s.account < ${FIRST_VOUCHER} and s.serial_number is not null
    group by s.bucket, s.account
  ) m on m.bucket = v.bucket and m.account = reserve_of(v.batch_id)
), lapses as (
  select s.*, sum(s.taken_minor - s.amount_minor) over (partition by s.batch_id) as lapsed_minor
  from shares s
)`,
    checked: sql`select count(*) from batches where value_minor is not null`,
    differing: sql`
  select b.transaction_id as "transactionId", b.status, l.bucket, l.taken_minor::text as "expectedMinor",
    l.amount_minor::text as "journalMinor", b.lapsed
  from lapses l join batches b on b.id = l.batch_id
  where case b.lapsed
      when 0 then l.taken_minor <> l.amount_minor
      else l.lapsed_minor <> b.lapsed * b.value_minor
    end
    and (${quietBefore}::timestamptz is null or b.expires_at > ${now}::timestamptz
      or b.swept_at < ${quietBefore})`,
  }),
};

/** The checks of single vouchers, limited to those that moved. */
export const TOUCHED: Checks = {
  // A replaced voucher holds nothing: a constraint of the table says so.
  'voucher-balances': ({ since }) => ({
    given: sql`touched as materialized (select * from touched_vouchers(${since.id}::uuid))`,
    checked: sql`select count(*) from touched`,
    differing: sql`
  select t.serial_number as "serialNumber", t.balance_minor::text as "balanceMinor",
    t.amount_minor::text as "journalMinor", t.batch_currency as currency, t.currency as "journalCurrency"
  from touched t
  where t.closed is distinct from 'REPLACED' and (
    t.balance_minor is distinct from t.amount_minor
    or t.currency <> t.other_currency or t.currency <> t.batch_currency)`,
  }),

  activations: ({ since }) => {
    const active = sql`
    union select bucket, serial_number from vouchers where activated_at >= ${since.at}::timestamptz`;
    const touched = sql`
    select distinct bucket, serial_number from journal
    where id >= ${since.id}::uuid and kind in ('ACTIVATION', 'IMPORT', 'REPLACEMENT')
    ${since.readsVouchers ? active : sql``}`;
    return {
      checked: sql`select count(*) from (${touched}) t`,
      differing: sql`
  select ${ACTIVATED}
  from (${touched}) t
  join vouchers v on v.bucket = t.bucket and v.serial_number = t.serial_number
  left join lateral (
    select ${COUNTED}
    from journal j
    where j.bucket = t.bucket and j.serial_number = t.serial_number
      and j.kind in ('ACTIVATION', 'IMPORT', 'REPLACEMENT')
  ) a on true
  left join vouchers p on p.bucket = v.bucket and p.replaced_by = v.serial_number
  where ${NOT_ACTIVATED_ONCE}`,
    };
  },
};

/** Returns the sum that the journal moved on an account since the closing, before an id or from it on. */
export async function sumMoved(
  tx: Queries,
  account: bigint,
  since: Since,
  id: string,
  isBefore: boolean,
): Promise<bigint> {
  const [moved] = await tx.query<{ minor: bigint }>(sql`
select coalesce(sum(s.amount_minor), 0)::bigint as minor
from (${SIDES} where j.id ${isBefore ? sql`<` : sql`>=`} ${id}::uuid and ${isLater(since)}) s
where s.account = ${account}::bigint`);
  return moved?.minor ?? 0n;
}

/**
 * Returns the total balance of each kind of account, positive if more was credited than debited. Floats count
 * with their stored balances, and so do vouchers if all are read. All others count with the opening balance
 * and the movements of the journal. If the totals sum to zero, the stored balances together are right.
 */
export function sumByKind(since: Since): Sql {
  const { day, readsVouchers } = since;
  const stored = sql`
union all
select 'VOUCHER', b.currency, min(b.decimals), sum(v.balance_minor)::text
from (select batch_id, sum(balance_minor) as balance_minor from vouchers group by batch_id) v
join batches b on b.id = v.batch_id
group by b.currency`;
  return sql`
select 'FLOAT' as kind, currency, min(decimals) as decimals, sum(balance_minor)::text as minor
from floats group by currency${readsVouchers ? stored : sql``}
union all
select p.kind, p.currency, min(p.decimals), sum(p.minor)::text
from (
  select account_kind as kind, currency, null::smallint as decimals, balance_minor as minor
  from book_balances
  where day = ${day}::date and account_kind <> 'FLOAT'
    ${readsVouchers ? sql`and account_kind <> 'VOUCHER'` : sql``}
  union all
  select coalesce(a.kind::text, ${kindOf(sql`m.account`, sql`'UNKNOWN'`)}), m.currency, a.decimals, m.minor
  from (
    select least(s.account, ${FIRST_VOUCHER}) as account, s.currency, sum(s.amount_minor) as minor
    from (${SIDES} where ${isLater(since)}) s
    ${readsVouchers ? sql`where s.account < ${FIRST_VOUCHER}` : sql``} group by 1, 2
  ) m
  left join accounts a on a.id = m.account
  where a.kind is distinct from 'FLOAT'
) p
group by 1, 2
order by 2, 1`;
}

/**
 * Removes the limits of a reconciliation. It reads all history, so it may take longer than a request, and
 * needs memory for its joins.
 */
export async function readHistory(tx: Queries): Promise<void> {
  await readLong(tx, '2h');
  await tx.query(sql`set local work_mem = '128MB'`);
  // Digests contain times as text.
  await tx.query(sql`set local timezone to 'UTC'`);
}
