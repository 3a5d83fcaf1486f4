import { type Sql, sql } from '../db/sql.ts';

/** Differences that a check shows: enough to see what they have in common. */
const EXAMPLES = 10;
/** Account numbers from here on are reserves of batches: this number and the batch's. */
const FIRST_RESERVE = 5_000_000_000n;
/** Account numbers from here on are vouchers, by their serial number. */
const FIRST_VOUCHER = 10_000_000_000n;

/** Every journal row as the two accounts that it changes. */
const SIDES = `
  select j.bucket, j.kind, j.currency, s.account, s.amount_minor
  from journal j
  cross join lateral (values (j.credit_account, j.amount_minor),
    (j.debit_account, -j.amount_minor)) as s (account, amount_minor)`;

/**
 * One statement for each check, over the whole database. It returns how many rows were checked, and
 * examples of differences as JSON, or null. Each reads its tables once or twice from end to end and
 * joins them by hash, whatever their size. Amounts are text in minor units, since a difference can have
 * any size. Examples have no order: to sort them, the planner would walk an index.
 *
 * Over shards there is no snapshot of all of them at one moment. So everything that changes while the
 * tills run is compared within a bucket: a shard answers from one snapshot of its own. What spans
 * shards is compared only if it has been quiet since `quietBefore`.
 */
export const checks: Readonly<Record<string, (quietBefore: Date | null) => Sql>> = {
  'float-balances': () => ({
    text: `
with moved as (
  select s.account, sum(s.amount_minor) as amount_minor from (${SIDES}) s
  where s.account < ${FIRST_RESERVE} group by s.account
)
select (select count(*) from floats) as checked, json_agg(d) as differing from (
  select f.account_id as account, f.merchant_id as "merchantId", f.currency,
    f.balance_minor::text as "balanceMinor",
    coalesce(m.amount_minor, 0)::text as "journalMinor"
  from floats f left join moved m on m.account = f.account_id
  where f.balance_minor <> coalesce(m.amount_minor, 0)
  limit ${EXAMPLES}
) d`,
    values: [],
  }),

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
    from (${SIDES}) s where s.account >= ${FIRST_VOUCHER} group by s.bucket, s.account
  ) m on m.bucket = v.bucket and m.account = v.serial_number
  left join batches b on b.id = v.batch_id
  where v.balance_minor is distinct from coalesce(m.amount_minor, 0)
    or m.currency <> m.other_currency or m.currency <> b.currency
  limit ${EXAMPLES}
) d`,
    values: [],
  }),

  // One row moves one amount between two accounts, so it balances by itself, if both accounts exist,
  // are of kinds that its own kind permits, and have its currency and merchant. An activation is paid
  // from the reserve of its batch, or from the float (over shards, the transit account) if the batch
  // has none. Vouchers that do not exist are found by voucher-balances.
  'journal-entries': () => ({
    text: `
select (select count(*) from journal) as checked, json_agg(e) as differing from (
  select s.id as "transactionId", s.kind, s.debit_account as "debitAccount",
    s.credit_account as "creditAccount",
    s.debit as "debitKind", s.credit as "creditKind", s.currency
  from (
    select j.*, v.batch_id as voucher_batch, n.value_minor as batch_value,
      case when j.debit_account >= ${FIRST_VOUCHER} then 'VOUCHER' when j.debit_account >= ${FIRST_RESERVE}
        then 'RESERVE'
        else d.kind::text end as debit,
      case when j.credit_account >= ${FIRST_VOUCHER} then 'VOUCHER'
        when j.credit_account >= ${FIRST_RESERVE} then 'RESERVE'
        else c.kind::text end as credit,
      coalesce(d.currency, r.currency, j.currency) as debit_currency,
        coalesce(c.currency, r.currency, j.currency) as credit_currency,
      case when d.kind in ('FLOAT', 'SETTLEMENT') then d.merchant_id when c.kind in ('FLOAT', 'SETTLEMENT')
        then c.merchant_id
        when j.kind = 'ACTIVATION' and d.kind is not null then j.merchant_id when j.kind = 'REPLACEMENT'
          then null
        else coalesce(r.merchant_id, j.merchant_id) end as owner,
      case when j.credit_account >= ${FIRST_VOUCHER} then j.credit_account
        when j.debit_account >= ${FIRST_VOUCHER} then j.debit_account end as voucher
    from journal j
    left join accounts d on d.id = j.debit_account
    left join accounts c on c.id = j.credit_account
    left join batches r on r.id = case when j.debit_account between ${FIRST_RESERVE} and ${FIRST_VOUCHER} - 1
      then j.debit_account - ${FIRST_RESERVE} when j.credit_account between ${FIRST_RESERVE}
        and ${FIRST_VOUCHER} - 1
      then j.credit_account - ${FIRST_RESERVE} end
    left join vouchers v on v.bucket = j.bucket and v.serial_number = j.serial_number
    left join batches n on n.id = v.batch_id
  ) s
  where is_movement(s.kind::text, s.debit, s.credit) is not true
    or case s.kind
      when 'RESERVATION' then s.credit_account = reserve_of(s.batch_id)
      when 'RELEASE' then s.debit_account = reserve_of(s.batch_id)
      when 'VOID' then s.credit_account = reserve_of(s.voucher_batch)
      when 'ACTIVATION' then case when s.batch_value is null then s.debit in ('FLOAT', 'TRANSIT')
        else s.debit_account = reserve_of(s.voucher_batch) end
      else true
    end is not true
    or s.amount_minor <= 0 or s.debit_account = s.credit_account
    or s.currency <> s.debit_currency or s.currency <> s.credit_currency
    or s.merchant_id is distinct from s.owner or s.serial_number is distinct from s.voucher
  limit ${EXAMPLES}
) e`,
    values: [],
  }),

  // A voucher is activated or imported once, with its value, or has taken over the value of the voucher
  // that it replaced.
  activations: () => ({
    text: `
select (select count(*) from vouchers) as checked, json_agg(d) as differing from (
  select v.serial_number as "serialNumber", v.activated_at as "activatedAt",
    v.value_minor::text as "valueMinor",
    coalesce(a.activations, 0) as activations, a.amount_minor::text as "activationMinor"
  from vouchers v
  left join (
    select bucket, serial_number, count(*) filter (where kind in ('ACTIVATION', 'IMPORT')) as activations,
      count(*) filter (where kind = 'REPLACEMENT') as replacements, sum(amount_minor) as amount_minor
    from journal where kind in ('ACTIVATION', 'IMPORT', 'REPLACEMENT') group by bucket, serial_number
  ) a on a.bucket = v.bucket and a.serial_number = v.serial_number
  left join vouchers p on p.bucket = v.bucket and p.replaced_by = v.serial_number
  where case when p.serial_number is null
    then coalesce(a.activations, 0) <> (v.activated_at is not null)::int or coalesce(a.replacements, 0) > 0
      or v.value_minor is distinct from a.amount_minor
    else coalesce(a.activations, 0) <> (v.activated_at is not null and p.activated_at is null)::int
      or v.activated_at is not null and v.value_minor <> coalesce(a.amount_minor, 0)
      or p.activated_at is not null and v.activated_at is distinct from p.activated_at
      or v.activated_at is null and a.amount_minor is not null end
  limit ${EXAMPLES}
) d`,
    values: [],
  }),

  'redemption-updates': () => ({
    text: `
select (select count(*) from redemption_updates) as checked, json_agg(d) as differing from (
  select coalesce(u.original_id, j.original_id) as "originalId", j.id as "transactionId", j.kind
  from redemption_updates u
  full join (
    select * from journal
    where original_id is not null and kind in ('REDEMPTION', 'REDEMPTION_REVERSAL', 'REPLACEMENT')
  ) j on j.bucket = u.bucket and j.original_id = u.original_id
  left join journal o on o.bucket = u.bucket and o.id = u.original_id and o.kind = 'REDEMPTION'
    and o.original_id is null
  where u.original_id is null or o.id is null or j.id is null or j.currency <> o.currency
    or j.occurred_at <> u.updated_at
    or u.new_minor < 0 or (u.new_id is null) <> (u.new_minor = 0)
    or case j.kind
      when 'REDEMPTION_REVERSAL' then j.id = u.reversal_id and j.amount_minor = o.amount_minor
        and j.debit_account = o.credit_account and j.credit_account = o.debit_account
        and j.reference is not distinct from 'CANCEL-' || o.reference
        and j.serial_number = o.serial_number and j.merchant_id = o.merchant_id
      when 'REDEMPTION' then j.id = u.new_id and j.amount_minor = u.new_minor
        and j.debit_account = o.debit_account and j.credit_account = o.credit_account
        and j.reference is not distinct from 'NEW-' || o.reference
        and j.serial_number = o.serial_number and j.merchant_id = o.merchant_id
      when 'REPLACEMENT' then j.debit_account = o.serial_number
        and j.amount_minor = o.amount_minor - u.new_minor
    end is not true
  limit ${EXAMPLES}
) d`,
    values: [],
  }),

  // Each part of an update exists once: its reversal and, unless it reversed in full, its new
  // redemption.
  'update-entries': () => ({
    text: `
select (select count(*) from redemption_updates) as checked, json_agg(d) as differing from (
  select u.original_id as "originalId", u.reversal_id as "transactionId", null as kind
  from redemption_updates u
  left join journal r on r.bucket = u.bucket and r.id = u.reversal_id
  left join journal n on n.bucket = u.bucket and n.id = u.new_id
  where r.id is null or (u.new_id is not null and n.id is null)
  union all
  select null, id, kind::text from journal where kind = 'REDEMPTION_REVERSAL' and original_id is null
  limit ${EXAMPLES}
) d`,
    values: [],
  }),

  // A replaced voucher does not count; its successor does.
  batches: (quietBefore) => sql`
with made as (
  select batch_id, count(*) filter (where closed is distinct from 'REPLACED') as vouchers,
    count(*) filter (where closed = 'CANCELED') as canceled
  from vouchers group by batch_id
)
select (select count(*) from batches) as checked, json_agg(d) as differing from (
  select coalesce(b.id, m.batch_id) as "batchId", b.transaction_id as "transactionId", b.status, b.quantity,
    b.produced,
    coalesce(m.vouchers, 0) as vouchers
  from batches b
  full join made m on m.batch_id = b.id
  where (b.id is null or coalesce(m.vouchers, 0) <> b.produced or b.produced > b.quantity
      or (b.status = 'COMPLETED' and b.produced <> b.quantity) or (b.status <> 'CANCELED' and m.canceled > 0))
    and (${quietBefore}::timestamptz is null or coalesce(b.ended_at < ${quietBefore}, false))
  limit ${EXAMPLES}
) d`,

  // The reserve of a batch, in each bucket: its vouchers took what they were activated with, and a
  // canceled batch returned the rest.
  'reserve-shares': () => ({
    text: `
select (select count(*) from batches where value_minor is not null) as checked, json_agg(d) as differing
  from (
  select b.transaction_id as "transactionId", b.status, v.bucket, v.taken_minor::text as "expectedMinor",
    coalesce(m.amount_minor, 0)::text as "journalMinor"
  from (
    select n.bucket, n.batch_id,
      count(*) filter (where n.activated_at is not null and n.closed is distinct from 'REPLACED') as active,
      coalesce(sum(n.balance_minor) filter (where n.closed is null), 0) as open_minor,
      case when c.status = 'CANCELED' then coalesce(sum(n.balance_minor) filter (where n.closed is null), 0)
        else c.value_minor * count(*) filter (where n.activated_at is not null and n.closed is distinct
          from 'REPLACED') end
        as taken_minor
    from vouchers n join batches c on c.id = n.batch_id and c.value_minor is not null
    group by n.bucket, n.batch_id, c.status, c.value_minor
  ) v
  join batches b on b.id = v.batch_id
  left join (
    select s.bucket, s.account, -sum(s.amount_minor) as amount_minor from (${SIDES}) s
    where s.account >= ${FIRST_RESERVE} and s.account < ${FIRST_VOUCHER} and s.kind in ('ACTIVATION', 'VOID')
    group by s.bucket, s.account
  ) m on m.bucket = v.bucket and m.account = reserve_of(v.batch_id)
  where v.taken_minor <> coalesce(m.amount_minor, 0)
  limit ${EXAMPLES}
) d`,
    values: [],
  }),

  // A batch reserves its whole price once, and returns it once if it is canceled.
  reserves: (quietBefore) => sql`
with moved as (
  select batch_id, sum(amount_minor) filter (where kind = 'RESERVATION') as reserved,
    coalesce(sum(amount_minor) filter (where kind = 'RELEASE'), 0) as released
  from journal where kind in ('RESERVATION', 'RELEASE') group by batch_id
)
select (select count(*) from batches where value_minor is not null) as checked, json_agg(d) as differing
  from (
  select b.transaction_id as "transactionId", b.status, (b.quantity * b.value_minor)::text as "expectedMinor",
    m.reserved::text as "reservedMinor", m.released::text as "releasedMinor"
  from (select * from batches where value_minor is not null) b
  full join moved m on m.batch_id = b.id
  where (b.id is null or m.reserved is distinct from b.quantity * b.value_minor
      or m.released <> case b.status when 'CANCELED' then b.quantity * b.value_minor else 0 end)
    and (${quietBefore}::timestamptz is null or coalesce(b.ended_at, b.accepted_at) < ${quietBefore})
  limit ${EXAMPLES}
) d`,

  replacements: () => ({
    text: `
select (select count(*) from vouchers where closed = 'REPLACED' or replaced_by is not null) as checked,
  json_agg(d) as differing from (
  select o.serial_number as "serialNumber", o.replaced_by as "replacedBy",
    o.balance_minor::text as "balanceMinor"
  from vouchers o
  left join vouchers n on n.bucket = o.bucket and n.serial_number = o.replaced_by
  left join (
    select bucket, replaced_by, count(*) as times from vouchers where replaced_by is not null
      group by bucket, replaced_by
  ) t on t.bucket = o.bucket and t.replaced_by = o.replaced_by
  where (o.closed = 'REPLACED' or o.replaced_by is not null)
    and (o.closed is distinct from 'REPLACED' or n.serial_number is null or n.batch_id <> o.batch_id
      or o.balance_minor <> 0 or t.times > 1)
  limit ${EXAMPLES}
) d`,
    values: [],
  }),

  // Money goes from a replaced voucher to its successor, or on to the last of the chain by an update.
  'replacement-entries': () => ({
    text: `
select (select count(*) from journal where kind = 'REPLACEMENT') as checked, json_agg(d) as differing from (
  select j.id as "transactionId", j.debit_account as "serialNumber", j.credit_account as "replacedBy"
  from journal j
  left join vouchers o on o.bucket = j.bucket and o.serial_number = j.debit_account and o.closed = 'REPLACED'
  left join vouchers n on n.bucket = j.bucket and n.serial_number = j.credit_account
  where j.kind = 'REPLACEMENT' and (o.serial_number is null or n.serial_number is null
    or n.batch_id <> o.batch_id
    or j.original_id is null and o.replaced_by <> j.credit_account)
  limit ${EXAMPLES}
) d`,
    values: [],
  }),

  // A booking has used its reference up: without the claim a retry would be a second payment. On one
  // server a claim is written with its booking, so there is no claim without one either.
  references: (quietBefore) => sql`
with booked as (
  select j.merchant_id, j.reference, j.id, case j.kind when 'ACTIVATION' then 'activate' when 'REDEMPTION'
    then 'redeem' else 'top-up' end as operation
  from journal j
  where j.reference is not null and j.original_id is null and j.batch_id is null
    and j.kind in ('ACTIVATION', 'REDEMPTION', 'TOP_UP')
    and (${quietBefore}::timestamptz is null or j.occurred_at < ${quietBefore})
  union all
  select merchant_id, reference, transaction_id, 'generate' from batches
  where ${quietBefore}::timestamptz is null or accepted_at < ${quietBefore}
)
select (select count(*) from claims) as checked, json_agg(d) as differing from (
  select coalesce(b.id, c.id) as "transactionId", coalesce(b.operation, c.operation::text) as operation,
    c.id is not null as claimed, b.id is not null as booked
  from booked b
  full join claims c on c.merchant_id = b.merchant_id and c.operation::text = b.operation
    and c.reference = b.reference and c.id = b.id
  where c.id is null or (b.id is null and ${quietBefore}::timestamptz is null)
  limit ${EXAMPLES}
) d`,

  // Every top-up has its entry in the audit, which names the transaction.
  'top-ups': (quietBefore) => sql`
with noted as (
  select after::json ->> 'transactionId' as id from audit where action = 'float.top-up'
)
select (select count(*) from journal where kind = 'TOP_UP') as checked, json_agg(d) as differing from (
  select j.id as "transactionId", j.merchant_id as "merchantId", j.amount_minor::text as "amountMinor"
  from journal j left join noted t on t.id = j.id::text
  where j.kind = 'TOP_UP' and t.id is null and (${quietBefore}::timestamptz is null
    or j.occurred_at < ${quietBefore})
  limit ${EXAMPLES}
) d`,

  // Every booking since an endpoint was enabled has its delivery to that endpoint, for as long as
  // deliveries are kept.
  deliveries: () => ({
    text: `
select (select count(*) from webhook_deliveries) as checked, json_agg(d) as differing from (
  select j.id as "transactionId", e.id as "endpointId"
  from journal j
  join webhook_endpoints e on e.merchant_id = j.merchant_id and e.disabled_at is null and e.removed_at is null
    and j.id >= id_floor(greatest(e.enabled_at + interval '1 minute', now() - interval '60 days'))
    and (e.events is null or case j.kind when 'ACTIVATION' then 'voucher.activated' when 'REDEMPTION'
      then 'voucher.redeemed'
      else 'redemption.updated' end = any (e.events))
  left join webhook_deliveries w on w.bucket = j.bucket and w.endpoint_id = e.id and w.event_id = j.id
  where w.event_id is null and j.batch_id is null
    and (j.kind in ('ACTIVATION', 'REDEMPTION') and j.original_id is null or j.kind = 'REDEMPTION_REVERSAL')
  limit ${EXAMPLES}
) d`,
    values: [],
  }),

  // Over shards, what is in transit is what is held. On one server it is nothing.
  holds: () => sql`
with transit as (
  select a.currency, sum(case when j.credit_account = a.id then j.amount_minor
    else -j.amount_minor end) as amount_minor
  from accounts a join journal j on a.id in (j.credit_account, j.debit_account)
  where a.kind = 'TRANSIT' and j.kind in ('HOLD', 'HOLD_RELEASE', 'ACTIVATION') group by a.currency
), held as (
  select f.currency, sum(h.amount_minor) as amount_minor from float_holds h join floats f
    on f.account_id = h.account_id
  where h.ended_at is null group by f.currency
)
select (select count(*) from float_holds) as checked, json_agg(d) as differing from (
  select coalesce(t.currency, h.currency) as currency, t.amount_minor::text as "journalMinor",
    h.amount_minor::text as "heldMinor"
  from transit t full join held h on h.currency = t.currency
  where coalesce(t.amount_minor, 0) <> coalesce(h.amount_minor, 0)
  limit ${EXAMPLES}
) d`,
};

/**
 * What all accounts of a kind hold, positive if more was credited than debited. For floats and vouchers
 * it is what is stored, for all others what the journal moved. If they sum to zero, all stored balances
 * together are right.
 */
export function sumByKind(): Sql {
  return {
    text: `
select 'FLOAT' as kind, currency, min(decimals) as decimals, sum(balance_minor)::text as minor from floats
  group by currency
union all
select 'VOUCHER', b.currency, min(b.decimals), sum(v.balance_minor)::text
from (select batch_id, sum(balance_minor) as balance_minor from vouchers group by batch_id) v join batches b
  on b.id = v.batch_id
group by b.currency
union all
select coalesce(a.kind::text, case when m.account >= ${FIRST_RESERVE} then 'RESERVE' else 'UNKNOWN' end),
  m.currency,
  min(a.decimals), sum(m.amount_minor)::text
from (
  select s.account, s.currency, sum(s.amount_minor) as amount_minor from (${SIDES}) s
  where s.account < ${FIRST_VOUCHER} group by s.account, s.currency
) m
left join accounts a on a.id = m.account
where a.kind is distinct from 'FLOAT' group by 1, 2
order by 2, 1`,
    values: [],
  };
}

/**
 * A reconciliation reads the whole history, so it may take longer than a request, and more memory for
 * its joins.
 */
export const allowLongReading: readonly Sql[] = [
  sql`set transaction read only`,
  sql`set local statement_timeout = '2h'`,
  sql`set local work_mem = '128MB'`,
];
