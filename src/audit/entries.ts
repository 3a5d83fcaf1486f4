import Type, { type Static } from 'typebox';
import { ACTOR_KINDS } from '../context.ts';
import type { Queries } from '../db/pool.ts';
import { type Sql, sql } from '../db/sql.ts';
import { listing, listingAll } from '../listing.ts';
import { type Caller, reading, tableOf } from '../operation.ts';
import { ROLES, VERIFY } from '../principal.ts';
import { Problem } from '../problem.ts';
import { columnsOf } from '../row.ts';
import { End, Line, NullableText, Start, Text, Time, Titled, Word } from '../schema.ts';
import { DAY_MS } from '../time.ts';
import { toSpan } from '../zone.ts';

/** The entries of the audit, as people read them. */

const Sequence = Type.String({
  pattern: '^[0-9]+$',
  description: 'The number of the entry, counted from 1.',
});
const Details = Type.Unsafe<Readonly<Record<string, unknown>> | null>({ type: ['object', 'null'] });

export const EntrySchema = Type.Object({
  sequence: Titled('Number', Sequence),
  occurredAt: Titled('Time', Time),
  actorKind: Word(ACTOR_KINDS),
  actorId: NullableText,
  actor: Titled('By', Text),
  origin: Titled('From', Text),
  requestId: NullableText,
  action: Text,
  subject: Text,
  reason: NullableText,
  before: Details,
  after: Details,
  hash: Text,
});

export type AuditEntry = Static<typeof EntrySchema>;

const COLUMNS = sql`
${columnsOf(Type.Omit(EntrySchema, ['before', 'after', 'hash']))}, before::json, after::json,
encode(hash, 'hex') as hash`;

/** Lists the newest entries that meet a condition, newest first. */
function newest(db: Queries, condition: Sql, count: number): Promise<AuditEntry[]> {
  return db.query<AuditEntry>(sql`
select ${COLUMNS} from audit where ${condition} order by audit.sequence desc limit ${count}`);
}

/** Lists the newest entries, newest first: all, or those of a subject such as `merchant 5`. */
export function listAudit(db: Queries, subject: string | null, count: number): Promise<AuditEntry[]> {
  return newest(db, subject === null ? sql`true` : sql`subject = ${subject}::text`, count);
}

type Filters = Partial<Pick<AuditEntry, 'subject' | 'actor' | 'actorKind' | 'action'>>;

type Span = { readonly from: Date | null; readonly until: Date | null };

/** Selects entries before a sequence number. Each filter has an index (sql/019-operator.sql). */
function conditionsOf(
  { subject, actor, actorKind, action }: Filters,
  { from, until }: Span,
  before?: string,
) {
  const all: (Sql | undefined)[] = [
    before === undefined ? undefined : sql`audit.sequence < ${before}::bigint`,
    subject === undefined ? undefined : sql`subject = ${subject}::text`,
    actor === undefined ? undefined : sql`actor = ${actor}::text`,
    action === undefined ? undefined : sql`action = ${action}::text`,
    actorKind === undefined ? undefined : sql`actor_kind = ${actorKind}::text`,
    // Entries are almost in the order of their times, so the entries around a time show where a list begins
    // and ends.
    until === null
      ? undefined
      : sql`occurred_at < ${until}::timestamptz and audit.sequence <= coalesce((
      select max(e.sequence) from (
        select n.sequence from audit n where n.occurred_at < ${until}::timestamptz
        order by n.occurred_at desc, n.sequence desc limit 100
      ) e), 0)`,
    from === null
      ? undefined
      : sql`occurred_at >= ${from}::timestamptz and audit.sequence >= coalesce((
      select min(e.sequence) from (
        select n.sequence from audit n where n.occurred_at >= ${from}::timestamptz
        order by n.occurred_at, n.sequence limit 100
      ) e), 9223372036854775807)`,
  ];
  return all.filter((each) => each !== undefined).reduce((one, other) => sql`${one} and ${other}`, sql`true`);
}

const list = listing({
  name: 'audit.list',
  summary: 'List changes by operators, newest first',
  path: '/audit',
  item: EntrySchema,
  filters: {
    subject: Type.Optional(Line(200, 'Only those of this subject.', 'merchant 5')),
    actor: Type.Optional(Line(200, 'Only those by this actor.', 'anna')),
    actorKind: Type.Optional(Word(ACTOR_KINDS, { description: 'Only those by actors of this kind.' })),
    action: Type.Optional(Line(100, 'Only those of this action.', 'merchant.suspend')),
    from: Type.Optional(Start('The first of them.')),
    to: Type.Optional(End('The last of them.')),
  },
  columns: ['sequence', 'occurredAt', 'actor', 'origin', 'action', 'subject', 'reason', 'before', 'after'],
  roles: VERIFY,
  async rows(caller, { from, to, ...filters }, [before], count) {
    const span = await toSpan(caller, { from, to });
    const conditions = conditionsOf(filters, span, before === undefined ? undefined : String(before));
    return newest(caller.service.readDb, conditions, count);
  },
  position: ({ sequence }) => [sequence],
});

/**
 * The end of the chain. If it is published, it proves later that nothing before it was changed or removed.
 */
type Head = { readonly sequence: bigint; readonly hash: string; readonly occurredAt: Date };

/** Returns the end of the chain, or undefined if there is no entry yet. */
export async function auditHead(db: Queries): Promise<Head | undefined> {
  const [head] = await db.query<Head>(sql`
select sequence, encode(hash, 'hex') as hash, occurred_at as "occurredAt"
from audit order by sequence desc limit 1`);
  return head;
}

const head = reading({
  name: 'audit.head',
  summary: 'Get the hash of the newest change, to be published',
  path: '/audit/head',
  input: {},
  output: Type.Object({ sequence: Sequence, hash: Text, occurredAt: Time }),
  roles: VERIFY,
  async run({ service }: Caller) {
    const end = await auditHead(service.readDb);
    if (!end) throw new Problem('not-found', 'nothing was changed yet');
    return { ...end, sequence: String(end.sequence) };
  },
});

const SHOWN_DAYS = 7;
const SHOWN_MAX = 200;

const Broken = Type.Object({
  sequence: Sequence,
  occurredAt: Time,
  until: Type.Unsafe<Date>({ ...Time, description: 'The time until which the console shows it.' }),
  actor: Text,
  origin: Text,
  action: Text,
  subject: Text,
  reason: NullableText,
});

const breakGlass = listingAll({
  name: 'audit.break-glass',
  summary: 'List operations of the last seven days that one person did with --break-glass, newest first',
  path: '/audit/break-glass',
  item: Broken,
  columns: ['sequence', 'occurredAt', 'actor', 'origin', 'action', 'subject', 'reason'],
  roles: ROLES,
  async rows({ service: { readDb, clock } }) {
    const since = new Date(clock().getTime() - SHOWN_DAYS * DAY_MS);
    const found = await newest(
      readDb,
      sql`actor_kind = 'break-glass' and occurred_at >= ${since}`,
      SHOWN_MAX,
    );
    const until = ({ occurredAt }: AuditEntry) => new Date(occurredAt.getTime() + SHOWN_DAYS * DAY_MS);
    return found.map((entry) => ({ ...entry, until: until(entry) }));
  },
});

export const audits = { list, head, breakGlass };

export const OPERATIONS = tableOf(...Object.values(audits));

/** The actions in the audit that no operation has. Those of operations are declared with them. */
export const OTHER_ACTIONS: Readonly<Record<string, string>> = {
  'account.locked': 'An account or an address was locked after wrong attempts',
  'approval.propose': 'Propose an operation that two people have to agree on',
  'audit.broken': 'Scrip itself found that the chain of the audit is broken',
  'keyring.drop': 'Drop a retired key',
  'keyring.retire': 'A key is no longer used: everything is sealed under the newest',
  'keyring.rotate': 'Begin to use a new key',
  'operation.refused': 'A role or a merchant was refused an operation',
  'session.begin': 'Sign in',
  'session.end': 'Sign out',
  'session.refused': 'A sign-in was refused',
  'session.step-up': 'Confirm a sign-in with a second factor',
  'session.step-up-refused': 'A second factor was refused',
  'token.refused': 'A token was refused',
  'user.add-passkey': 'Add a passkey',
  'user.bind-oidc': 'Bind an account of the single sign-on',
  'user.change-password': 'Change the password',
  'user.enroll': 'Accept an invitation',
  'user.remove-passkey': 'Remove a passkey',
  'user.renew-recovery-codes': 'Make new recovery codes',
  'voucher.export': 'Export the code and PIN of a voucher for a replacement card',
  'voucher.import': 'Begin an import of vouchers from another system',
  'voucher.imported': 'All vouchers of an import are in the books',
};
