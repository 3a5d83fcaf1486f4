import { raw, type Sql, sql } from '../db/sql.ts';

/**
 * What operators set. Each entry of the audit stores the digest of all rows of its subject, as the change
 * left them. A reconciliation computes the digests again, so it finds a row that was changed by other means.
 */

/** The rows of a table that belong to a kind of subject. `t` is the table. */
type Part = {
  readonly table: string;
  /** The key of the subject, and its type. */
  readonly key: string;
  readonly type: 'integer' | 'text';
  /** A join that the key needs. */
  readonly join?: string;
  /** The columns that may change without an entry. All others are in the digest. */
  readonly without?: readonly string[];
  /** The part of the row that belongs to the subject; left out: the whole row. */
  readonly row?: string;
  readonly where?: string;
};

const OF_PRODUCT = { key: 'p.code', type: 'text', join: 'join products p on p.id = t.product_id' } as const;
const OF_MERCHANT = { key: 't.merchant_id', type: 'integer' } as const;
const OF_SETTLEMENT = { key: 't.settlement_id', type: 'integer' } as const;
/** The key of a kind that has only one subject. */
const ONLY = { key: "''", type: 'text' } as const;

/**
 * The kinds of subjects, with the tables that hold what operators set. The subject is the kind and the key,
 * such as `merchant 5`.
 */
export const STATES: Readonly<Record<string, readonly Part[]>> = {
  merchant: [
    { table: 'merchants', key: 't.id', type: 'integer', without: ['changed_by'] },
    { table: 'merchant_names', ...OF_MERCHANT },
    { table: 'settlement_terms', ...OF_MERCHANT },
    { table: 'daily_limits', ...OF_MERCHANT, without: ['day', 'used_minor', 'refused_at'] },
    {
      table: 'floats',
      ...OF_MERCHANT,
      row: "jsonb_build_object('currency', t.currency, 'low_minor', t.low_minor)",
      where: 't.low_minor is not null',
    },
  ],
  product: [
    { table: 'products', key: 't.code', type: 'text' },
    { table: 'voucher_vat', ...OF_PRODUCT },
    { table: 'book_breakage_rates', ...OF_PRODUCT },
  ],
  design: [{ table: 'card_designs', key: 't.name', type: 'text' }],
  rule: [{ table: 'dormancy_rules', key: 't.name', type: 'text' }],
  books: [
    {
      table: 'books',
      ...ONLY,
      row: "jsonb_build_object('zone', t.zone, 'grace_minutes', t.grace_minutes)",
    },
    { table: 'gl_accounts', ...ONLY },
  ],
  settings: [{ table: 'operator_settings', ...ONLY }],
  'bank account': [
    { table: 'bank_accounts', key: 't.name', type: 'text' },
    { table: 'bank_own', key: 't.account', type: 'text' },
  ],
  'bank mapping': [{ table: 'bank_mappings', key: 't.name', type: 'text' }],
  'bank file': [
    { table: 'bank_files', key: 't.id', type: 'integer' },
    { table: 'bank_entries', key: 't.file_id', type: 'integer', without: ['matched_minor'] },
  ],
  'bank entry': [
    { table: 'bank_matches', key: 't.entry_id', type: 'integer' },
    {
      table: 'bank_entries',
      key: 't.id',
      type: 'integer',
      row: "jsonb_build_object('matched_minor', t.matched_minor)",
      where: 't.matched_minor <> 0',
    },
  ],
  settlement: [
    // The hashes of the documents are in the entry of the approval.
    { table: 'settlements', key: 't.id', type: 'integer', without: ['csv', 'pdf'] },
    { table: 'settlement_lines', ...OF_SETTLEMENT },
    { table: 'settlement_payouts', ...OF_SETTLEMENT },
    { table: 'settlement_disputes', ...OF_SETTLEMENT },
  ],
  'payout file': [
    { table: 'payout_files', key: 't.id', type: 'integer' },
    { table: 'payout_file_settlements', key: 't.file_id', type: 'integer' },
  ],
  'api-key': [{ table: 'api_keys', key: 't.id', type: 'text', without: ['changed_by', 'expiry_announced'] }],
  webhook: [
    {
      table: 'webhook_endpoints',
      key: 't.id',
      type: 'integer',
      row: `jsonb_build_object('merchant_id', t.merchant_id, 'url', t.url, 'events', t.events,
        'full_vouchers', t.full_vouchers, 'removed_at', t.removed_at)`,
    },
  ],
};

/** What operators set on a voucher. `v` is its row. */
const VOUCHER = `jsonb_build_object('expires_at', v.expires_at, 'blocked_at', v.blocked_at,
  'closed', v.closed, 'replaced_by', v.replaced_by)`;
export const VOUCHER_SUBJECT = 'voucher ';

/** Subjects that exist before anything is set, with the rows that they then have. */
const INITIAL: Readonly<Record<string, object>> = {
  books: { zone: 'UTC', grace_minutes: 15 },
  'product DEFAULT': {
    code: 'DEFAULT',
    activation: 'immediate',
    scope: 'network',
    expiry_policy: 'operator',
    on_sale: true,
    merchant_id: null,
  },
};

const kinds = Object.keys(STATES).sort((one, other) => other.length - one.length);
const lineOf = ({ table, row, without = [] }: Part) =>
  `'${table} ' || jsonb_strip_nulls(${row ?? `to_jsonb(t) - '{${without.join()}}'::text[]`})::text`;
/** Selects the rows of a part: the subject of each, its line in the digest, and the row as JSON. */
const linesOf = (kind: string, part: Part) =>
  raw(`select rtrim('${kind} ' || ${part.key}) as subject, ${lineOf(part)} as line,
  ${part.row ?? 'to_jsonb(t)'} as row
from ${part.table} t ${part.join ?? ''} where ${part.where ?? 'true'}`);
const digestOf = (line: string) =>
  `encode(sha256(convert_to(string_agg(${line}, E'\\n' order by ${line} collate "C"), 'UTF8')), 'hex')`;

/** Returns the kind of a subject; undefined if operators set nothing on it. */
export function kindOf(subject: string): string | undefined {
  if (/^voucher \d+$/.test(subject)) return 'voucher';
  return kinds.find((each) => subject === each || subject.startsWith(`${each} `));
}

/**
 * Lists the digests of subjects of one kind: `subject` and `digest`. A subject without rows is
 * left out.
 * @param bucketOf returns the bucket of a serial number
 */
export function listStates(
  kind: string,
  subjects: readonly string[],
  bucketOf: (serial: bigint) => number,
): Sql {
  const keys = subjects.map((subject) => subject.slice(kind.length + 1));
  if (kind === 'voucher')
    return sql`select 'voucher ' || v.serial_number as subject, ${raw(VOUCHER_STATE)} as digest
from unnest(${keys.map((key) => bucketOf(BigInt(key)))}::integer[], ${keys}::bigint[]) as u (bucket, serial)
cross join lateral show_voucher(u.bucket, u.serial) v`;
  const lines = (STATES[kind] as readonly Part[]).map(
    (part) => sql`${linesOf(kind, part)} and ${raw(part.key)} = any (${keys}::${raw(part.type)}[])`,
  );
  const all = lines.reduce((one, other) => sql`${one}\nunion all\n${other}`);
  return sql`select s.subject, ${raw(digestOf('s.line'))} as digest from (${all}) s group by 1`;
}

/** The columns `subject`, `digest` and `is_initial` of all subjects but vouchers, as a query. */
export const ALL_STATES = raw(`
select s.subject, ${digestOf('s.line')} as digest,
  count(*) = 1 and bool_and(case s.subject ${Object.entries(INITIAL)
    .map(([subject, row]) => `when '${subject}' then s.row @> '${JSON.stringify(row)}'`)
    .join(' ')} else false end) as is_initial
from (
${Object.entries(STATES)
  .flatMap(([kind, parts]) => parts.map((part) => linesOf(kind, part).text))
  .join('\nunion all\n')}
) s
group by s.subject`);

/** The digest of a voucher `v`, to compare with its last entry. */
export const VOUCHER_STATE = `encode(sha256(convert_to(${VOUCHER}::text, 'UTF8')), 'hex')`;
