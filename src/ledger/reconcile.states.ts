import { ALL_STATES, VOUCHER_STATE, VOUCHER_SUBJECT } from '../audit/states.ts';
import { sql } from '../db/sql.ts';
import { type Checks, EXAMPLES } from './reconcile.scope.ts';

/** The last digest of each subject in the audit, as a query with the columns `subject` and `digest`. */
const LAST_STATES = sql`
select distinct on (s.key) s.key as subject, s.value as digest
from audit a cross join lateral json_each_text(a.states::json) s
where a.states is not null
order by s.key, a.sequence desc`;

const OF_VOUCHER = `subject like '${VOUCHER_SUBJECT}%'`;
const SERIAL = `substr(k.subject, ${VOUCHER_SUBJECT.length + 1})::bigint`;

/** Compares what operators set with the last entry of the audit about it (src/audit/states.ts). */
export const SET: Checks = {
  // Names, rules, terms, limits, keys, endpoints, what a bank statement says, and the blocks and expiries of
  // vouchers that an operator changed.
  'set-by-operators': () => ({
    text: `
-- Materialized: beside shards, a whole row of a table of the coordinator has only some of its columns.
with known as materialized (${LAST_STATES.text}), found as materialized (${ALL_STATES.text})
select (select count(*) from known) as checked, json_agg(d) as differing from (
  select subject
  from (select * from known where not ${OF_VOUCHER}) k full join found f using (subject)
  where k.digest is distinct from f.digest and not (k.subject is null and f.is_initial)
  union all
  select k.subject
  from (select * from known where ${OF_VOUCHER}) k left join vouchers v on v.serial_number = ${SERIAL}
  where k.digest is distinct from case when v.serial_number is not null then ${VOUCHER_STATE} end
  limit ${EXAMPLES}
) d`,
    values: [],
  }),
};

/** Checks the vouchers of which no operator has set anything. */
export const UNSET: Checks = {
  // They are not blocked, and expire with their batch. A voucher of an import has an expiry of its own, which
  // the check `ages` compares.
  'vouchers-as-made': () => ({
    text: `
with known as (select distinct ${SERIAL} as serial_number from (${LAST_STATES.text}) k where ${OF_VOUCHER})
select (select count(*) from vouchers) as checked, json_agg(d) as differing from (
  select v.serial_number as "serialNumber", v.expires_at as "expiresAt", v.blocked_at as "blockedAt"
  from vouchers v
  join batches b on b.id = v.batch_id
  left join known k on k.serial_number = v.serial_number
  where k.serial_number is null and (v.blocked_at is not null or v.expires_at <> b.expires_at and not exists (
      select from journal j
      where j.bucket = v.bucket and j.serial_number = v.serial_number and j.kind = 'IMPORT'
    ))
  limit ${EXAMPLES}
) d`,
    values: [],
  }),
};
