import { type Sql, sql } from '../db/sql.ts';
import { BATCHES, RECORDS } from './reconcile.records.ts';
import { type Checks, EXAMPLES, type Since } from './reconcile.scope.ts';
import { SETTLEMENTS } from './reconcile.settlements.ts';
import { ACTIVATED, COUNTED, NOT_ACTIVATED_ONCE, OPENING, STOCK, TOUCHED } from './reconcile.since.ts';
import { AGES, DAYS, IDS, SLICES } from './reconcile.slices.ts';
import { SET, UNSET } from './reconcile.states.ts';

/** The most floats that are checked again on several shards, where tills continue meanwhile. */
const CANDIDATES = 10_000;
/** Account numbers from here on are reserves of batches: this number plus the id of the batch. */
const FIRST_RESERVE = 5_000_000_000n;
/** Account numbers from here on are serial numbers of vouchers. */
const FIRST_VOUCHER = 10_000_000_000n;

/** Lists the two accounts that each journal row changes. */
const SIDES = sql`
  select j.bucket, j.kind, j.currency, j.serial_number, s.account, s.amount_minor
  from journal j
  cross join lateral (values (j.credit_account, j.amount_minor), (j.debit_account, -j.amount_minor))
    as s (account, amount_minor)`;

/**
 * Compares the stored balances of floats and vouchers with the journal, and every row of the journal with its
 * accounts.
 */
const BALANCES: Checks = {
  // On several shards these are candidates: each is checked again while its float is locked (reconcile.ts).
  'float-balances': ({ quietBefore, since }) => sql`
with opening as (
  select merchant_id, currency, balance_minor from book_balances
  where day = ${since.day}::date and account_kind = 'FLOAT'
), moved as (
  select s.account, sum(s.amount_minor) as amount_minor from (
    select l.account, l.amount_minor from journal j
    cross join lateral (values (j.credit_account, j.amount_minor), (j.debit_account, -j.amount_minor))
      as l (account, amount_minor)
    where j.id >= ${since.id}::uuid and j.occurred_at >= ${since.at}::timestamptz
  ) s
  where s.account < ${FIRST_RESERVE} group by s.account
)
select (select count(*) from floats) as checked, json_agg(d) as differing from (
  select f.account_id as account, f.merchant_id as "merchantId", f.currency,
    f.balance_minor::text as "balanceMinor",
    (coalesce(o.balance_minor, 0) + coalesce(m.amount_minor, 0))::text as "journalMinor"
  from floats f
  left join moved m on m.account = f.account_id
  left join opening o on o.merchant_id = f.merchant_id and o.currency = f.currency
  where f.balance_minor <> coalesce(o.balance_minor, 0) + coalesce(m.amount_minor, 0)
  limit case when ${quietBefore}::timestamptz is null then ${EXAMPLES}::int else ${CANDIDATES}::int end
) d`,

  // The full join also finds money on vouchers that do not exist.
  'voucher-balances': () => ({
    text: `
select (select count(*) from vouchers) as checked, json_agg(d) as differing from (
  select coalesce(v.serial_number, m.account) as "serialNumber", v.balance_minor::text as "balanceMinor",
    coalesce(m.amount_minor, 0)::text as "journalMinor", b.currency, m.currency as "journalCurrency"
  from vouchers v
  full join (
    select s.bucket, s.account, sum(s.amount_minor) as amount_minor, min(s.currency) as currency,
      max(s.currency) as other_currency
    from (${SIDES.text}) s where s.account >= ${FIRST_VOUCHER} group by s.bucket, s.account
  ) m on m.bucket = v.bucket and m.account = v.serial_number
  left join batches b on b.id = v.batch_id
  where v.balance_minor is distinct from coalesce(m.amount_minor, 0)
    or m.currency <> m.other_currency or m.currency <> b.currency
  limit ${EXAMPLES}
) d`,
    values: [],
  }),

  // One row moves one amount between two accounts, so it balances by itself if both accounts exist, have the
  // kinds that its own kind allows, and belong to its currency and its merchant. An activation is paid from
  // the reserve of its batch or, if the batch has none, from the float (on several shards, the transit
  // account). Any merchant may activate a voucher that its batch has paid for. Money that leaves a voucher
  // other than by a redemption goes to the float of its payer, and comes back from there. The price of a
  // single voucher moves without changing its balance. The check voucher-balances finds unknown vouchers.
  'journal-entries': ({ since }) => sql`
select (
    select count(*) from journal where id >= ${since.id}::uuid and occurred_at >= ${since.at}::timestamptz
  ) as checked,
  json_agg(e) as differing from (
  select s.id as "transactionId", s.kind, s.debit_account as "debitAccount",
    s.credit_account as "creditAccount", s.debit as "debitKind", s.credit as "creditKind", s.currency
  from (
    select j.*, v.batch_id as voucher_batch, n.value_minor as batch_value,
      v.payer_id = j.merchant_id as is_payer, v.payer_id = n.merchant_id as is_paid_by_issuer,
      case
        when j.debit_account >= ${FIRST_VOUCHER}::bigint then 'VOUCHER'
        when j.debit_account >= ${FIRST_RESERVE}::bigint then 'RESERVE'
        else d.kind::text
      end as debit,
      case
        when j.credit_account >= ${FIRST_VOUCHER}::bigint then 'VOUCHER'
        when j.credit_account >= ${FIRST_RESERVE}::bigint then 'RESERVE'
        else c.kind::text
      end as credit,
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
        when j.credit_account >= ${FIRST_VOUCHER}::bigint then j.credit_account
        when j.debit_account >= ${FIRST_VOUCHER}::bigint then j.debit_account
      end as voucher
    from journal j
    left join accounts d on d.id = j.debit_account
    left join accounts c on c.id = j.credit_account
    left join batches r on r.id = case
      when j.debit_account >= ${FIRST_RESERVE}::bigint and j.debit_account < ${FIRST_VOUCHER}::bigint
        then j.debit_account - ${FIRST_RESERVE}::bigint
      when j.credit_account >= ${FIRST_RESERVE}::bigint and j.credit_account < ${FIRST_VOUCHER}::bigint
        then j.credit_account - ${FIRST_RESERVE}::bigint
    end
    left join vouchers v on v.bucket = j.bucket and v.serial_number = j.serial_number
    left join batches n on n.id = v.batch_id
    where j.id >= ${since.id}::uuid and j.occurred_at >= ${since.at}::timestamptz
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
    end
  limit ${EXAMPLES}
) e`,

  // A voucher is activated or imported once, with its value, or has taken over the value of the voucher that
  // it replaced.
  activations: () => ({
    text: `
select (select count(*) from vouchers) as checked, json_agg(d) as differing from (
  select ${ACTIVATED}
  from vouchers v
  left join (
    select bucket, serial_number, ${COUNTED}
    from journal where kind in ('ACTIVATION', 'IMPORT', 'REPLACEMENT') group by bucket, serial_number
  ) a on a.bucket = v.bucket and a.serial_number = v.serial_number
  left join vouchers p on p.bucket = v.bucket and p.replaced_by = v.serial_number
  where ${NOT_ACTIVATED_ONCE}
  limit ${EXAMPLES}
) d`,
    values: [],
  }),

  // The reserve of a batch, in each bucket: it has paid the amounts with which the batch's vouchers were
  // activated, and the price of each voucher whose price went back separately. A canceled batch has received
  // all value that its vouchers no longer have. What a sweep gave back in one sum belongs to no bucket: it is
  // the price of the vouchers that the sweep found inactive.
  'reserve-shares': ({ quietBefore, now }) => ({
    text: `
with shares as materialized (
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
    from (${SIDES.text}) s
    where s.account >= ${FIRST_RESERVE} and s.account < ${FIRST_VOUCHER} and s.serial_number is not null
    group by s.bucket, s.account
  ) m on m.bucket = v.bucket and m.account = reserve_of(v.batch_id)
), lapses as (
  select s.*, sum(s.taken_minor - s.amount_minor) over (partition by s.batch_id) as lapsed_minor
  from shares s
)
select (select count(*) from batches where value_minor is not null) as checked,
  json_agg(d) as differing from (
  select b.transaction_id as "transactionId", b.status, l.bucket, l.taken_minor::text as "expectedMinor",
    l.amount_minor::text as "journalMinor", b.lapsed
  from lapses l join batches b on b.id = l.batch_id
  where case b.lapsed
      when 0 then l.taken_minor <> l.amount_minor
      else l.lapsed_minor <> b.lapsed * b.value_minor
    end
    and ($1::timestamptz is null or b.expires_at > $2::timestamptz or b.swept_at < $1)
  limit ${EXAMPLES}
) d`,
    values: [quietBefore, now],
  }),
};

/** Every check, in the order of the report. */
const checks: Checks = {
  ...DAYS,
  ...SLICES,
  ...BALANCES,
  ...AGES,
  ...BATCHES,
  ...RECORDS,
  ...SETTLEMENTS,
  ...SET,
  ...UNSET,
};

/** Checks of closed days, and checks that read all vouchers. */
const WHOLE_ONLY = [
  ...['ages', 'reserve-shares', 'replacements', 'buckets'],
  ...Object.keys(SETTLEMENTS),
  ...Object.keys(UNSET),
];

/** Returns the checks of rows after a closing, or every check. */
export function checksOf(since: Since): Checks {
  if (since.day === null) return checks;
  const own = Object.entries(checks).filter(([name]) => !WHOLE_ONLY.includes(name));
  return {
    ...OPENING,
    ...(since.readsVouchers ? STOCK : {}),
    ...IDS,
    ...Object.fromEntries(own),
    ...TOUCHED,
  };
}

/** Returns the sum that the journal moved on these accounts since the closing, before an id or from it on. */
export function sumMoved(accounts: readonly bigint[], since: Since, id: string, isBefore: boolean): Sql {
  return {
    text: `
select s.account, sum(s.amount_minor)::bigint as minor
from (
  select l.account, l.amount_minor from journal j
  cross join lateral (values (j.credit_account, j.amount_minor), (j.debit_account, -j.amount_minor))
    as l (account, amount_minor)
  where j.id ${isBefore ? '<' : '>='} $2::uuid and j.id >= $3::uuid and j.occurred_at >= $4::timestamptz
) s
where s.account = any ($1::bigint[]) group by s.account`,
    values: [accounts, id, since.id, since.at],
  };
}

/**
 * Returns the total balance of each kind of account, positive if more was credited than debited. Floats count
 * with their stored balances, and so do vouchers if all are read. All others count with the opening balance
 * and the movements of the journal. If the totals sum to zero, the stored balances together are right.
 */
export function sumByKind({ day, at, id, readsVouchers }: Since): Sql {
  const stored = `
union all
select 'VOUCHER', b.currency, min(b.decimals), sum(v.balance_minor)::text
from (select batch_id, sum(balance_minor) as balance_minor from vouchers group by batch_id) v
join batches b on b.id = v.batch_id
group by b.currency`;
  return {
    text: `
select 'FLOAT' as kind, currency, min(decimals) as decimals, sum(balance_minor)::text as minor
from floats group by currency${readsVouchers ? stored : ''}
union all
select p.kind, p.currency, min(p.decimals), sum(p.minor)::text
from (
  select account_kind as kind, currency, null::smallint as decimals, balance_minor as minor
  from book_balances
  where day = $1::date and account_kind <> 'FLOAT' ${readsVouchers ? "and account_kind <> 'VOUCHER'" : ''}
  union all
  select coalesce(a.kind::text, case
      when m.account >= ${FIRST_VOUCHER} then 'VOUCHER'
      when m.account >= ${FIRST_RESERVE} then 'RESERVE'
      else 'UNKNOWN'
    end),
    m.currency, a.decimals, m.minor
  from (
    select least(s.account, ${FIRST_VOUCHER}) as account, s.currency, sum(s.amount_minor) as minor
    from (${SIDES.text} where j.id >= $2::uuid and j.occurred_at >= $3::timestamptz) s
    ${readsVouchers ? `where s.account < ${FIRST_VOUCHER}` : ''} group by 1, 2
  ) m
  left join accounts a on a.id = m.account
  where a.kind is distinct from 'FLOAT'
) p
group by 1, 2
order by 2, 1`,
    values: [day, id, at],
  };
}

/**
 * Removes the limits of a reconciliation. It reads all history, so it may take longer than a request, and
 * needs memory for its joins.
 */
export const allowLongReading: readonly Sql[] = [
  sql`set transaction read only`,
  sql`set local statement_timeout = '2h'`,
  sql`set local work_mem = '128MB'`,
  // Digests contain times as text.
  sql`set local timezone to 'UTC'`,
  // Later rows are found along indexes that only a bitmap can use.
  sql`set local enable_bitmapscan = on`,
];
