import { ALL_STATES, VOUCHER_STATE, VOUCHER_SUBJECT } from '../audit/states.ts';
import { SLOTS } from '../db/buckets.ts';
import { raw, sql } from '../db/sql.ts';
import { MOVEMENT_KINDS, movementOf } from './kinds.ts';
import { type Checks, isLater, isQuiet, type Since } from './reconcile.scope.ts';

/** The kinds of movements with the operations whose references they have. */
const OPERATIONS = raw(
  MOVEMENT_KINDS.flatMap((kind) => {
    const { operation } = movementOf(kind);
    return operation ? [`('${kind}', '${operation}')`] : [];
  }).join(', '),
);

/**
 * Compares every booking with the records made with it: updates, references, the audit, deliveries, holds,
 * buckets.
 */
export const RECORDS: Checks = {
  'redemption-updates': ({ since }) => ({
    checked: sql`select count(*) from redemption_updates where updated_at >= ${since.at}::timestamptz`,
    differing: sql`
  select coalesce(u.original_id, j.original_id) as "originalId", j.id as "transactionId", j.kind
  from (select * from redemption_updates where updated_at >= ${since.at}::timestamptz) u
  full join (
    select * from journal j
    where original_id is not null and kind in ('REDEMPTION', 'REDEMPTION_REVERSAL', 'REPLACEMENT')
      and ${isLater(since)}
  ) j on j.bucket = u.bucket and j.original_id = u.original_id
  left join journal o on o.bucket = u.bucket and o.id = u.original_id and o.kind = 'REDEMPTION'
    and o.original_id is null
  where u.original_id is null or o.id is null or j.id is null or j.currency <> o.currency
    or j.occurred_at <> u.updated_at or u.new_minor < 0 or (u.new_id is null) <> (u.new_minor = 0)
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
    end is not true`,
  }),

  // The rows of an update exist once: its reversal and, unless it reversed in full, its new redemption. Every
  // reversal belongs to one update.
  'update-entries': ({ since }) => ({
    checked: sql`select count(*) from redemption_updates where updated_at >= ${since.at}::timestamptz`,
    differing: sql`
  select u.original_id as "originalId", u.reversal_id as "transactionId", null as kind
  from redemption_updates u
  left join journal r on r.bucket = u.bucket and r.id = u.reversal_id
  left join journal n on n.bucket = u.bucket and n.id = u.new_id
  where u.updated_at >= ${since.at}::timestamptz
    and (r.original_id is distinct from u.original_id or r.kind <> 'REDEMPTION_REVERSAL'
      or u.new_id is not null and (n.original_id is distinct from u.original_id or n.kind <> 'REDEMPTION'))
  union all
  select null, id, kind::text from journal
  where kind = 'REDEMPTION_REVERSAL' and original_id is null and id >= ${since.id}::uuid`,
  }),

  // Refunds come from the account that the redemption paid, and together give back at most what it took, or
  // what an update left of it.
  refunds: ({ since }) => ({
    given: sql`
recent as (
  select distinct bucket, original_id from journal where kind = 'REFUND' and id >= ${since.id}::uuid
)`,
    checked: sql`select count(*) from recent`,
    differing: sql`
  select r.original_id as "transactionId", sum(j.amount_minor)::text as "refundedMinor",
    coalesce(u.new_minor, o.amount_minor)::text as "redeemedMinor"
  from recent r
  left join journal o on o.bucket = r.bucket and o.id = r.original_id and o.kind = 'REDEMPTION'
    and o.original_id is null
  left join redemption_updates u on u.bucket = r.bucket and u.original_id = r.original_id
  left join journal j on j.bucket = r.bucket and j.original_id = r.original_id and j.kind = 'REFUND'
  group by r.bucket, r.original_id, o.id, o.credit_account, o.currency, o.amount_minor, u.new_minor
  having o.id is null or sum(j.amount_minor) > coalesce(u.new_minor, o.amount_minor)
    or bool_or(j.debit_account <> o.credit_account or j.currency <> o.currency)`,
  }),

  // A booking has used its reference: without the claim, a retry would be a second payment. The claim names
  // the same voucher and amount, which a fingerprint holds in ten-thousandths of a major unit. Otherwise a
  // retry of a different request would be a replay. On one server a claim was written with its booking, so
  // every claim has a booking as well, unless its reference was given up.
  references: ({ quietBefore, since }) => ({
    given: sql`
operations (kind, operation) as (
  values ${OPERATIONS}
), booked as (
  select j.merchant_id, j.reference, j.id, j.serial_number, (j.amount_minor * unit_of(s.decimals))::text
    as amount, o.operation
  from journal j
  join operations o on o.kind = j.kind::text
  join (select currency, min(decimals) as decimals from accounts group by currency) s using (currency)
  where j.reference is not null and j.batch_id is null and j.id >= ${since.id}::uuid
    and (j.original_id is null or j.kind not in ('ACTIVATION', 'REDEMPTION'))
    and ${isQuiet(quietBefore, 'j.occurred_at')}
  union all
  select merchant_id, reference, transaction_id, null, null, 'generate' from batches
  where transaction_id >= ${since.id}::uuid
    and ${isQuiet(quietBefore, 'accepted_at')}
), claimed as (
  select * from claims where id >= ${since.id}::uuid
)`,
    checked: sql`select count(*) from claims where id >= ${since.id}::uuid`,
    differing: sql`
  select coalesce(b.id, c.id) as "transactionId", coalesce(b.operation, c.operation::text) as operation,
    c.id is not null as claimed, b.id is not null as booked
  from booked b
  full join claimed c on c.operation::text = b.operation and c.reference = b.reference and c.id = b.id
  where c.id is null or (b.id is null and ${quietBefore}::timestamptz is null
      and (c.operation, c.fingerprint) <> ('redeem', 'given-up'))
    or c.operation in ('generate', 'activate', 'redeem', 'top-up', 'payout', 'payout-return')
      and c.merchant_id <> b.merchant_id
    or b.id is not null and c.operation in ('activate', 'redeem')
      and (c.serial_number is distinct from b.serial_number
        or c.fingerprint <> b.amount)`,
  }),

  // On several shards: a transaction is booked or voided, never both.
  voids: ({ since }) => ({
    checked: sql`select count(*) from voids where id >= ${since.id}::uuid`,
    differing: sql`
  select v.id as "transactionId", j.kind, j.serial_number as "serialNumber"
  from voids v join journal j on j.bucket = v.bucket and j.id = v.id
  where v.id >= ${since.id}::uuid`,
  }),

  // A voucher is in the bucket of its serial number; otherwise no request finds it. Every bucket has its row;
  // otherwise nothing is booked there.
  buckets: ({ buckets }) => ({
    checked: sql`select count(*) from vouchers`,
    differing: sql`
  select v.serial_number as "serialNumber", v.bucket from vouchers v
  where v.bucket <> (${buckets}::int[])[1 + v.serial_number % ${SLOTS} % cardinality(${buckets}::int[])]
  union all
  select null, c.bucket from claims c where c.bucket <> all (${buckets}::int[])
  union all
  select null, b.bucket from unnest(${buckets}::int[]) as b (bucket)
  where b.bucket not in (select k.bucket from buckets k)`,
  }),

  // Every top-up has an author: an entry in the audit names the transaction.
  'top-ups': ({ quietBefore, since }) => ({
    given: sql`
noted as (
  select after::json ->> 'transactionId' as id from audit where action = 'float.top-up'
)`,
    checked: sql`select count(*) from journal where kind = 'TOP_UP' and id >= ${since.id}::uuid`,
    differing: sql`
  select j.id as "transactionId", j.merchant_id as "merchantId", j.amount_minor::text as "amountMinor"
  from journal j left join noted t on t.id = j.id::text
  where j.kind = 'TOP_UP' and j.id >= ${since.id}::uuid and t.id is null
    and ${isQuiet(quietBefore, 'j.occurred_at')}`,
  }),

  // A payment of unclaimed money to a state names the expired amounts that it paid. Each of them is paid
  // once, and never given back.
  escheats: ({ since }) => ({
    given: sql`
noted as materialized (
  select expiry_id, escheat_id, serial_number, amount_minor, expired_at from escheated_expiries
  where escheated_at >= ${since.at}::timestamptz
), found as materialized (
  select j.id, j.serial_number, j.amount_minor, least(j.occurred_at, v.expires_at) as expired_at, exists (
      select 1 from journal r
      where r.bucket = j.bucket and r.serial_number = j.serial_number and r.kind = 'REINSTATEMENT'
        and r.original_id = j.id
    ) as is_reinstated
  from journal j
  join noted n on n.expiry_id = j.id
  join vouchers v on v.bucket = j.bucket and v.serial_number = j.serial_number
  join accounts a on a.id = j.credit_account and a.kind = 'UNCLAIMED'
  where j.kind = 'EXPIRY'
), paid as materialized (
  select j.id, j.amount_minor from journal j
  join accounts a on a.id = j.debit_account and a.kind = 'UNCLAIMED'
  where j.kind = 'ESCHEAT' and ${isLater(since)}
), named as (
  select escheat_id, sum(amount_minor) as amount_minor from noted group by escheat_id
)`,
    checked: sql`select count(*) from noted`,
    differing: sql`
  select coalesce(p.id, n.escheat_id) as "transactionId", null::bigint as "serialNumber",
    p.amount_minor::text as "journalMinor", n.amount_minor::text as "namedMinor"
  from paid p full join named n on n.escheat_id = p.id
  where p.amount_minor is distinct from n.amount_minor
  union all
  select n.expiry_id, n.serial_number, f.amount_minor::text, n.amount_minor::text
  from noted n left join found f on f.id = n.expiry_id
  where f.serial_number is distinct from n.serial_number or f.amount_minor <> n.amount_minor
    or f.expired_at <> n.expired_at or f.is_reinstated`,
  }),

  // What imports booked from funding is the sum of the movements of their vouchers.
  imports: ({ since }) => ({
    given: sql`
noted as (
  select i.merchant_id, m.currency, sum(m.amount_minor) as minor
  from import_movements m join voucher_imports i on i.id = m.import_id
  where m.booked_on > coalesce(${since.day}::date, '-infinity') group by 1, 2
), booked as (
  select j.merchant_id, j.currency, sum(j.amount_minor) as minor
  from journal j join accounts a on a.id = j.debit_account and a.kind = 'FUNDING'
  where j.kind = 'IMPORT' and ${isLater(since)}
  group by 1, 2
)`,
    checked: sql`select count(*) from noted`,
    differing: sql`
  select merchant_id as "merchantId", currency, n.minor::text as "notedMinor", b.minor::text as "journalMinor"
  from noted n full join booked b using (merchant_id, currency)
  where n.minor is distinct from b.minor`,
  }),

  // Every booking since an endpoint was enabled has a delivery to it, as long as deliveries are kept.
  deliveries: ({ since }) => ({
    checked: sql`select count(*) from webhook_deliveries where event_id >= ${since.id}::uuid`,
    differing: sql`
  select j.id as "transactionId", e.id as "endpointId"
  from journal j
  join webhook_endpoints e on e.merchant_id in (j.merchant_id, 0) and e.disabled_at is null
    and e.removed_at is null
    and j.id >= id_floor(greatest(e.enabled_at + interval '1 minute', now() - interval '60 days'))
    and (e.events is null or case j.kind
      when 'ACTIVATION' then 'voucher.activated'
      when 'REDEMPTION' then 'voucher.redeemed'
      else 'redemption.updated'
    end = any (e.events))
  left join webhook_deliveries w on w.bucket = j.bucket and w.endpoint_id = e.id and w.event_id = j.id
    and w.event_id >= ${since.id}::uuid
  where w.event_id is null and j.batch_id is null and j.id >= ${since.id}::uuid
    and (j.kind in ('ACTIVATION', 'REDEMPTION') and j.original_id is null or j.kind = 'REDEMPTION_REVERSAL')`,
  }),

  // On several shards: money that went into transit has a hold, and money that left it was booked or
  // released. The holds of a call share a row for each float; an activation has its own, and may be booked
  // before its hold ends. One server has no holds.
  holds: ({ quietBefore, since }) => ({
    given: sql`
moved as (
  select j.id, j.kind::text as kind, j.amount_minor, j.occurred_at
  from journal j join accounts a on a.kind = 'TRANSIT' and a.id in (j.credit_account, j.debit_account)
  where j.id >= ${since.id}::uuid
), recent as (
  select * from float_holds where ended_at is null or ended_at >= ${since.at}::timestamptz - interval '1 hour'
), held as (
  select entry_id as id, 'HOLD' as kind, sum(amount_minor)::bigint as amount_minor, max(held_at) as at,
    true as is_due from recent group by entry_id
  union all
  select release_id, 'HOLD_RELEASE', sum(amount_minor)::bigint, max(ended_at), true from recent
  where release_id is not null group by release_id
  union all
  select id, 'ACTIVATION', amount_minor, ended_at, ended_at is not null from recent
  where release_id is null
)`,
    checked: sql`select count(*) from recent`,
    differing: sql`
  select coalesce(h.id, m.id) as "transactionId", coalesce(h.kind, m.kind) as kind,
    m.amount_minor::text as "journalMinor", h.amount_minor::text as "heldMinor"
  from held h full join moved m on m.id = h.id and m.kind = h.kind and m.amount_minor = h.amount_minor
  where (m.id is null and h.is_due and h.id >= ${since.id}::uuid and h.at >= ${since.at}::timestamptz
      and ${isQuiet(quietBefore, 'h.at')})
    or (h.id is null and m.occurred_at >= ${since.at}::timestamptz
      and ${isQuiet(quietBefore, 'm.occurred_at')})`,
  }),
};

/** The condition for batches that have not ended, or ended since. */
const isRecent = ({ at }: Since) => sql`coalesce(ended_at, 'infinity') >= ${at}::timestamptz`;

/** Compares batches with their vouchers and their reserve, and vouchers with their replacements. */
export const BATCHES: Checks = {
  // A replaced voucher does not count; its replacement does. Vouchers are canceled with their batch, or each
  // by itself: a movement shows it or, if the voucher was not active, the audit.
  batches: ({ quietBefore, since }) => ({
    given: sql`
noted as (
  select distinct subject from audit where action = 'voucher.cancel'
), made as (
  select batch_id, count(*) filter (where closed is distinct from 'REPLACED') as vouchers,
    count(*) filter (where closed = 'CANCELED' and case
      when activated_at is null then payer_id is not null or n.subject is null
      -- Counted, since the planner could look for one in a hash of all of the journal.
      else (
        select count(*) from journal j
        where j.bucket = v.bucket and j.serial_number = v.serial_number and j.kind = 'CANCELLATION'
      ) = 0
    end) as canceled
  from vouchers v
  left join noted n on v.closed = 'CANCELED' and n.subject = 'voucher ' || v.serial_number
  ${since.day === null ? sql`` : sql`where batch_id in (select id from batches where ${isRecent(since)})`}
  group by batch_id
)`,
    checked: sql`select count(*) from batches where ${isRecent(since)}`,
    differing: sql`
  select coalesce(b.id, m.batch_id) as "batchId", b.transaction_id as "transactionId", b.status, b.quantity,
    b.produced, coalesce(m.vouchers, 0) as vouchers
  from (select * from batches where ${isRecent(since)}) b
  full join made m on m.batch_id = b.id
  where (b.id is null or coalesce(m.vouchers, 0) <> b.produced or b.produced > b.quantity
      or (b.status = 'COMPLETED' and b.produced <> b.quantity) or (b.status <> 'CANCELED' and m.canceled > 0))
    and (${quietBefore}::timestamptz is null or coalesce(b.ended_at < ${quietBefore}, false))`,
  }),

  // A batch reserves its whole price once, and returns it once if it is canceled. When the sweep after its
  // expiry ends, it returns the price of the vouchers that were not active. A sweep may date that row before
  // the last closing, so only the batches that expired since then must have one. The check reserve-shares has
  // the prices of single vouchers.
  reserves: ({ quietBefore, since }) => ({
    given: sql`
moved as (
  select batch_id, sum(amount_minor) filter (where kind = 'RESERVATION') as reserved,
    coalesce(sum(amount_minor) filter (where kind = 'RELEASE'), 0) as released
  from journal
  where kind in ('RESERVATION', 'RELEASE') and serial_number is null and id >= ${since.id}::uuid
  group by batch_id
), counted as (
  select *, accepted_at >= ${since.at}::timestamptz as is_new,
    case status
      when 'CANCELED' then ended_at >= ${since.at}::timestamptz
      else swept_at is not null and expires_at >= ${since.at}::timestamptz
    end as is_over,
    value_minor * case
      when status = 'CANCELED' then quantity when swept_at is not null then lapsed else 0
    end as due_minor
  from batches
  where value_minor is not null and (coalesce(ended_at, accepted_at) >= ${since.at}::timestamptz
    or swept_at is not null and expires_at >= ${since.at}::timestamptz
    or id in (select batch_id from moved))
)`,
    checked: sql`select count(*) from counted`,
    differing: sql`
  select b.transaction_id as "transactionId", b.status, (b.quantity * b.value_minor)::text as "expectedMinor",
    m.reserved::text as "reservedMinor", b.due_minor::text as "dueMinor", m.released::text as "releasedMinor"
  from counted b
  full join moved m on m.batch_id = b.id
  where (b.id is null or b.is_new and m.reserved is distinct from b.quantity * b.value_minor
      or (b.is_over or m.released > 0) and coalesce(m.released, 0) <> b.due_minor)
    and ${isQuiet(quietBefore, 'coalesce(b.swept_at, b.ended_at, b.accepted_at)')}`,
  }),

  replacements: () => ({
    checked: sql`select count(*) from vouchers where closed = 'REPLACED' or replaced_by is not null`,
    differing: sql`
  select o.serial_number as "serialNumber", o.replaced_by as "replacedBy",
    o.balance_minor::text as "balanceMinor"
  from vouchers o
  left join vouchers n on n.bucket = o.bucket and n.serial_number = o.replaced_by
  left join (
    select bucket, replaced_by, count(*) as times from vouchers
    where replaced_by is not null group by bucket, replaced_by
  ) t on t.bucket = o.bucket and t.replaced_by = o.replaced_by
  where (o.closed = 'REPLACED' or o.replaced_by is not null)
    and (o.closed is distinct from 'REPLACED' or n.serial_number is null or n.batch_id <> o.batch_id
      or o.balance_minor <> 0 or t.times > 1
      or o.activated_at is not null and n.payer_id is distinct from o.payer_id)`,
  }),

  // The uses of a voucher are one chain: the voucher names the last one, and each use the one before it. Two
  // processes that use it in turn may have clocks that differ by 210 seconds (check_stamp).
  uses: ({ since }) => ({
    checked: sql`
  select count(*) from journal j where j.kind = 'REDEMPTION' and j.original_id is null and ${isLater(since)}`,
    differing: sql`
  select j.id as "transactionId", j.serial_number as "serialNumber"
  from journal j
  left join vouchers v on v.bucket = j.bucket and v.serial_number = j.serial_number
  left join (
    select n.bucket, n.previous_use_id, count(*) as times from journal n
    where n.previous_use_id is not null and n.id >= ${since.id}::uuid group by 1, 2
  ) n on n.bucket = j.bucket and n.previous_use_id = j.id
  left join journal p on p.bucket = j.bucket and p.id = j.previous_use_id
  where ${isLater(since)} and (j.previous_use_id is not null or j.kind = 'REDEMPTION' and j.original_id is null)
    and (j.kind <> 'REDEMPTION' or j.original_id is not null
      or coalesce(n.times, 0) + (v.last_use_id is not distinct from j.id)::integer <> 1
      or j.previous_use_id is not null and (
        p.serial_number = j.serial_number and p.kind = 'REDEMPTION' and p.original_id is null
        and p.occurred_at <= j.occurred_at + interval '210 seconds') is not true)
  ${since.readsVouchers ? LAST_USE_OF_ANOTHER : sql``}`,
  }),

  // Money moves from a replaced voucher to its replacement, or to the last of the chain by an update.
  'replacement-entries': ({ since }) => ({
    checked: sql`select count(*) from journal where kind = 'REPLACEMENT' and id >= ${since.id}::uuid`,
    differing: sql`
  select j.id as "transactionId", j.debit_account as "serialNumber", j.credit_account as "replacedBy"
  from journal j
  left join vouchers o on o.bucket = j.bucket and o.serial_number = j.debit_account and o.closed = 'REPLACED'
  left join vouchers n on n.bucket = j.bucket and n.serial_number = j.credit_account
  where j.kind = 'REPLACEMENT' and j.id >= ${since.id}::uuid
    and (o.serial_number is null or n.serial_number is null or n.batch_id <> o.batch_id
      or j.original_id is null and o.replaced_by <> j.credit_account)`,
  }),
};

/** Vouchers whose last use is not theirs, for a union. */
const LAST_USE_OF_ANOTHER = sql`
  union all
  select v.last_use_id, v.serial_number
  from vouchers v left join journal j on j.bucket = v.bucket and j.id = v.last_use_id
  where v.last_use_id is not null
    and (j.serial_number = v.serial_number and j.kind = 'REDEMPTION' and j.original_id is null) is not true`;

/** The last digest of each subject in the audit, as a query with the columns `subject` and `digest`. */
const LAST_STATES = sql`
select distinct on (s.key) s.key as subject, s.value as digest
from audit a cross join lateral json_each_text(a.states::json) s
where a.states is not null
order by s.key, a.sequence desc`;

const OF_VOUCHER = raw(`subject like '${VOUCHER_SUBJECT}%'`);
const SERIAL = raw(`substr(k.subject, ${VOUCHER_SUBJECT.length + 1})::bigint`);

/** Compares what operators set with the last entry of the audit about it (src/audit/states.ts). */
export const SET: Checks = {
  // Names, rules, terms, limits, keys, endpoints, what a bank statement says, and the blocks and expiries of
  // vouchers that an operator changed.
  'set-by-operators': () => ({
    // Materialized: beside shards, a whole row of a table of the coordinator has only some of its columns.
    given: sql`known as materialized (${LAST_STATES}), found as materialized (${ALL_STATES})`,
    checked: sql`select count(*) from known`,
    differing: sql`
  select subject
  from (select * from known where not ${OF_VOUCHER}) k full join found f using (subject)
  where k.digest is distinct from f.digest and not (k.subject is null and f.is_initial)
  union all
  select k.subject
  from (select * from known where ${OF_VOUCHER}) k left join vouchers v on v.serial_number = ${SERIAL}
  where k.digest is distinct from case when v.serial_number is not null then ${raw(VOUCHER_STATE)} end`,
  }),
};

/** Checks the vouchers on which no operator has set anything. */
export const UNSET: Checks = {
  // They are not blocked, and expire with their batch. A voucher of an import has an expiry of its own, which
  // the check `ages` compares.
  'vouchers-as-made': () => ({
    given: sql`
known as (select distinct ${SERIAL} as serial_number from (${LAST_STATES}) k where ${OF_VOUCHER})`,
    checked: sql`select count(*) from vouchers`,
    differing: sql`
  select v.serial_number as "serialNumber", v.expires_at as "expiresAt", v.blocked_at as "blockedAt"
  from vouchers v
  join batches b on b.id = v.batch_id
  left join known k on k.serial_number = v.serial_number
  where k.serial_number is null and (v.blocked_at is not null or v.expires_at <> b.expires_at and not exists (
      select from journal j
      where j.bucket = v.bucket and j.serial_number = v.serial_number and j.kind = 'IMPORT'
    ))`,
  }),
};
