import { type Sql, sql } from '../db/sql.ts';

/** Differences that a check shows: enough to see what they have in common. */
const EXAMPLES = 10;
/** Accounts from here on are vouchers, and their number is the voucher's serial number. */
const FIRST_VOUCHER = 10_000_000_000n;

/**
 * One statement a check, each over the whole database. Out: how many were checked, and examples of what differs, as JSON, or null.
 * Each reads its tables once or twice from end to end and joins them by hash, whatever their size; amounts are text in
 * minor units, since what differs can be of any size. Examples stand in no order: asked for one, the database walks through
 * the journal by its index, which takes three times as long.
 */
export const checks: Readonly<Record<string, () => Sql>> = {
  'float-balances': () => sql`
with moved as (
  select account, sum(amount_minor) as amount_minor from (
    select credit_account as account, amount_minor from journal where credit_account < ${FIRST_VOUCHER}
    union all
    select debit_account, -amount_minor from journal where debit_account < ${FIRST_VOUCHER}
  ) m group by account
)
select (select count(*) from accounts where kind = 'FLOAT') as checked, json_agg(d) as differing from (
  select a.id as account, a.merchant_id as "merchantId", a.currency, a.balance_minor::text as "balanceMinor",
    coalesce(m.amount_minor, 0)::text as "journalMinor"
  from accounts a left join moved m on m.account = a.id
  where a.kind = 'FLOAT' and a.balance_minor <> coalesce(m.amount_minor, 0)
  order by a.id limit ${EXAMPLES}
) d`,

  // The full join also finds money on vouchers that do not exist.
  'voucher-balances': () => sql`
with moved as (
  select account, sum(amount_minor) as amount_minor, min(currency) as currency, max(currency) as other_currency from (
    select credit_account as account, amount_minor, currency from journal where credit_account >= ${FIRST_VOUCHER}
    union all
    select debit_account, -amount_minor, currency from journal where debit_account >= ${FIRST_VOUCHER}
  ) m group by account
)
select (select count(*) from vouchers) as checked, json_agg(d) as differing from (
  select coalesce(v.serial_number, m.account) as "serialNumber", v.balance_minor::text as "balanceMinor",
    coalesce(m.amount_minor, 0)::text as "journalMinor", b.currency, m.currency as "journalCurrency"
  from vouchers v
  full join moved m on m.account = v.serial_number
  left join batches b on b.id = v.batch_id
  where v.balance_minor is distinct from coalesce(m.amount_minor, 0)
    or m.currency <> m.other_currency or m.currency <> b.currency
  order by 1 limit ${EXAMPLES}
) d`,

  // One row moves one amount from one account to another, so it balances by itself: if both are there, of the kinds that its
  // own kind allows, in its currency, and its merchant's. (Vouchers that are not there: voucher-balances.)
  // A redemption uses its reference up by its operation: without it a retry would be a second payment.
  'journal-entries': () => sql`
with sides as (
  select j.*,
    case when j.debit_account >= ${FIRST_VOUCHER} then 'VOUCHER' else d.kind::text end as debit,
    case when j.credit_account >= ${FIRST_VOUCHER} then 'VOUCHER' else c.kind::text end as credit,
    coalesce(d.currency, j.currency) as debit_currency, coalesce(c.currency, j.currency) as credit_currency,
    case when d.kind in ('FLOAT', 'SETTLEMENT') then d.merchant_id when c.kind in ('FLOAT', 'SETTLEMENT') then c.merchant_id
      else j.merchant_id end as owner,
    case when j.credit_account >= ${FIRST_VOUCHER} then j.credit_account
      when j.debit_account >= ${FIRST_VOUCHER} then j.debit_account end as voucher
  from journal j
  left join accounts d on d.id = j.debit_account
  left join accounts c on c.id = j.credit_account
)
select (select count(*) from journal) as checked, json_agg(e) as differing from (
  select s.id as "transactionId", s.kind, s.debit_account as "debitAccount", s.credit_account as "creditAccount",
    s.debit as "debitKind", s.credit as "creditKind", s.currency
  from sides s
  where case s.kind
      when 'TOP_UP' then s.debit = 'FUNDING' and s.credit = 'FLOAT'
      when 'RESERVATION' then s.debit = 'FLOAT' and s.credit = 'RESERVE'
      when 'ACTIVATION' then s.debit in ('RESERVE', 'FLOAT') and s.credit = 'VOUCHER'
      when 'REDEMPTION' then s.debit = 'VOUCHER' and s.credit = 'SETTLEMENT'
        and (s.operation is not distinct from 'redeem') = (s.original_id is null)
      when 'REDEMPTION_REVERSAL' then s.debit = 'SETTLEMENT' and s.credit = 'VOUCHER'
      when 'REPLACEMENT' then s.debit = 'VOUCHER' and s.credit = 'VOUCHER'
      when 'EXPIRY' then s.debit = 'VOUCHER' and s.credit = 'BREAKAGE'
      when 'VOID' then s.debit = 'VOUCHER' and s.credit = 'RESERVE'
      when 'RELEASE' then s.debit = 'RESERVE' and s.credit = 'FLOAT'
    end is not true
    or s.amount_minor <= 0 or s.debit_account = s.credit_account
    or s.currency <> s.debit_currency or s.currency <> s.credit_currency
    or s.merchant_id is distinct from s.owner or s.serial_number is distinct from s.voucher
  limit ${EXAMPLES}
) e`,

  // A replacement takes over what its predecessor was: if that one was active, there is no activation of its own.
  activations: () => sql`
with activated as (
  select credit_account as serial_number, count(*) as entries, max(amount_minor) as amount_minor
  from journal where kind = 'ACTIVATION' group by credit_account
), predecessors as (
  select replaced_by as serial_number, activated_at, value_minor
  from vouchers where replaced_by is not null and activated_at is not null
)
select (select count(*) from vouchers) as checked, json_agg(d) as differing from (
  select v.serial_number as "serialNumber", v.activated_at as "activatedAt", v.value_minor::text as "valueMinor",
    coalesce(a.entries, 0) as activations, a.amount_minor::text as "activationMinor"
  from vouchers v
  left join activated a on a.serial_number = v.serial_number
  left join predecessors p on p.serial_number = v.serial_number
  where case when p.serial_number is null
    then coalesce(a.entries, 0) <> (v.activated_at is not null)::int or v.value_minor is distinct from a.amount_minor
    else a.entries > 0 or v.value_minor is distinct from p.value_minor or v.activated_at is distinct from p.activated_at end
  limit ${EXAMPLES}
) d`,

  'redemption-updates': () => sql`
with updates as (select * from journal where original_id is not null),
reversals as (select * from updates where kind = 'REDEMPTION_REVERSAL')
select (select count(*) from updates) + (select count(*) from journal where kind = 'REDEMPTION_REVERSAL' and original_id is null)
  as checked, json_agg(d) as differing from (
  select u.id as "transactionId", u.kind, u.original_id as "originalId"
  from updates u
  left join journal o on o.id = u.original_id and o.kind = 'REDEMPTION' and o.original_id is null
  left join reversals r on r.original_id = u.original_id
  where o.id is null or r.id is null or u.kind not in ('REDEMPTION', 'REDEMPTION_REVERSAL')
    or (u.kind = 'REDEMPTION_REVERSAL' and (u.amount_minor <> o.amount_minor or u.debit_account <> o.credit_account
      or u.credit_account <> o.debit_account or u.reference is distinct from 'CANCEL-' || o.reference))
    or (u.kind = 'REDEMPTION' and (u.debit_account <> o.debit_account or u.credit_account <> o.credit_account
      or u.occurred_at <> r.occurred_at or u.reference is distinct from 'NEW-' || o.reference))
    or u.serial_number is distinct from o.serial_number or u.merchant_id is distinct from o.merchant_id
    or u.operation is not null or u.currency <> o.currency
  union all
  select id, kind, null from journal where kind = 'REDEMPTION_REVERSAL' and original_id is null
  limit ${EXAMPLES}
) d`,

  // A voucher that was replaced does not count: the one in its place does.
  batches: () => sql`
with made as (
  select batch_id, count(*) filter (where closed is distinct from 'REPLACED') as vouchers,
    count(*) filter (where closed = 'CANCELED') as canceled
  from vouchers group by batch_id
)
select (select count(*) from batches) as checked, json_agg(d) as differing from (
  select coalesce(b.id, m.batch_id) as "batchId", b.transaction_id as "transactionId", b.status, b.quantity, b.produced,
    coalesce(m.vouchers, 0) as vouchers
  from batches b
  full join made m on m.batch_id = b.id
  where b.id is null or coalesce(m.vouchers, 0) <> b.produced or b.produced > b.quantity
    or (b.status = 'COMPLETED' and b.produced <> b.quantity) or (b.status <> 'CANCELED' and m.canceled > 0)
  order by 1 limit ${EXAMPLES}
) d`,

  // What a batch reserved is what its vouchers do not carry yet. A canceled batch has given everything back, and its reserve
  // is owed what vouchers still carry that have not been taken back.
  reserves: () => sql`
with made as (
  select batch_id, count(*) filter (where activated_at is not null and closed is distinct from 'REPLACED') as active,
    sum(balance_minor) filter (where closed is null) as open_minor
  from vouchers group by batch_id
), moved as (
  select account, sum(amount_minor) as amount_minor, sum(reserved) as reserved, sum(released) as released from (
    select credit_account as account, amount_minor, case when kind = 'RESERVATION' then amount_minor end as reserved, 0 as released
    from journal where credit_account < ${FIRST_VOUCHER}
    union all
    select debit_account, -amount_minor, null, case when kind = 'RELEASE' then amount_minor else 0 end
    from journal where debit_account < ${FIRST_VOUCHER}
  ) m group by account
), reserves as (
  select b.transaction_id, b.status, coalesce(a.id, b.reserve_account) as account, a.kind, b.id as batch_id,
    coalesce(m.amount_minor, 0) as found, coalesce(m.reserved, 0) as reserved, coalesce(m.released, 0) as released,
    b.quantity * b.value_minor as total,
    case b.status when 'CANCELED' then -coalesce(v.open_minor, 0) else b.value_minor * (b.quantity - coalesce(v.active, 0)) end
      as expected,
    a.currency is distinct from b.currency or a.merchant_id is distinct from b.merchant_id as foreign_account
  from (select * from batches where reserve_account is not null) b
  full join (select * from accounts where kind = 'RESERVE') a on a.id = b.reserve_account
  left join moved m on m.account = coalesce(a.id, b.reserve_account)
  left join made v on v.batch_id = b.id
)
select (select count(*) from reserves) as checked, json_agg(d) as differing from (
  select transaction_id as "transactionId", account, status, expected::text as "expectedMinor", found::text as "journalMinor",
    reserved::text as "reservedMinor", released::text as "releasedMinor"
  from reserves
  where case when batch_id is null then found <> 0
    else kind is null or foreign_account or found <> expected or reserved <> total
      or released <> case status when 'CANCELED' then total else 0 end end
  order by account limit ${EXAMPLES}
) d`,

  replacements: () => sql`
with replaced as (select * from vouchers where closed = 'REPLACED' or replaced_by is not null)
select (select count(*) from replaced) as checked, json_agg(d) as differing from (
  select o.serial_number as "serialNumber", o.replaced_by as "replacedBy", o.balance_minor::text as "balanceMinor"
  from replaced o
  left join vouchers n on n.serial_number = o.replaced_by
  where o.closed is distinct from 'REPLACED' or n.serial_number is null or n.batch_id <> o.batch_id or o.balance_minor <> 0
    or exists (select from replaced x where x.replaced_by = o.replaced_by and x.serial_number <> o.serial_number)
  union all
  select j.debit_account, j.credit_account, j.amount_minor::text
  from journal j left join replaced o on o.serial_number = j.debit_account and o.replaced_by = j.credit_account
  where j.kind = 'REPLACEMENT' and o.serial_number is null
  limit ${EXAMPLES}
) d`,
};

/**
 * What all accounts of a kind hold together, positive where more was credited than debited. Of floats and vouchers what is stored,
 * of all others what the journal moved: so that they add up to nothing says that all stored balances together are what they
 * should be.
 */
export function sumByKind(): Sql {
  return sql`
with moved as (
  select account, currency, sum(amount_minor) as amount_minor from (
    select credit_account as account, currency, amount_minor from journal where credit_account < ${FIRST_VOUCHER}
    union all
    select debit_account, currency, -amount_minor from journal where debit_account < ${FIRST_VOUCHER}
  ) m group by account, currency
)
select 'FLOAT' as kind, currency, sum(balance_minor)::text as minor from accounts where kind = 'FLOAT' group by currency
union all
select 'VOUCHER', b.currency, sum(v.balance_minor)::text
from (select batch_id, sum(balance_minor) as balance_minor from vouchers group by batch_id) v join batches b on b.id = v.batch_id
group by b.currency
union all
select coalesce(a.kind::text, 'UNKNOWN'), m.currency, sum(m.amount_minor)::text
from moved m left join accounts a on a.id = m.account where a.kind is distinct from 'FLOAT' group by 1, 2
order by 2, 1`;
}

/** A reconciliation reads everything that ever happened: it may take longer than a request, and memory for its joins. */
export const allowLongReading: readonly Sql[] = [
  sql`set transaction read only`,
  sql`set local statement_timeout = '2h'`,
  sql`set local work_mem = '128MB'`,
];
