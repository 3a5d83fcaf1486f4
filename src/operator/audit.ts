import Type, { type Static } from 'typebox';
import { auditHead, type AuditEntry as Entry, pageOfAudit, pageOfBreakGlass } from '../audit/audit.ts';
import { toSpan } from '../ledger/zone.ts';
import { type Caller, reading, tableOf } from '../operation.ts';
import { PAGE, Page, pageOf, readCursor } from '../page.ts';
import { ROLES, VERIFY } from '../principal.ts';
import { Problem } from '../problem.ts';
import { End, Input, Line, NullableText, Start, Text, Time, Word } from '../schema.ts';
import { DAY_MS } from '../time.ts';

const Sequence = Type.String({
  pattern: '^[0-9]+$',
  description: 'The number of the entry, counted from 1.',
});
const Details = Type.Unsafe<Readonly<Record<string, unknown>> | null>({ type: ['object', 'null'] });

export const KINDS = ['command-line', 'break-glass', 'token', 'user', 'alone', 'service'] as const;

const EntrySchema = Type.Object({
  sequence: Sequence,
  occurredAt: Time,
  actorKind: Word(KINDS),
  actorId: NullableText,
  actor: Text,
  origin: Text,
  requestId: NullableText,
  action: Text,
  subject: Text,
  reason: NullableText,
  before: Details,
  after: Details,
  hash: Text,
});

export type AuditEntry = Static<typeof EntrySchema>;

const toJson = (entry: Entry): AuditEntry => ({
  ...entry,
  sequence: String(entry.sequence),
  actorKind: entry.actorKind as AuditEntry['actorKind'],
});

type Filters = {
  subject?: string | undefined;
  actor?: string | undefined;
  actorKind?: string | undefined;
  action?: string | undefined;
  from?: string | undefined;
  to?: string | undefined;
};

async function filterOf(caller: Caller, filters: { [Name in keyof Filters]: Filters[Name] | null }) {
  const { subject = null, actor = null, actorKind: kind = null, action = null, from, to } = filters;
  return { subject, actor, kind, action, ...(await toSpan(caller, { from, to })) };
}

const list = reading({
  name: 'audit.list',
  summary: 'List changes by operators, newest first',
  method: 'GET',
  path: '/audit',
  command: 'audit list',
  input: Input({
    ...PAGE,
    subject: Type.Optional(Line(200, 'Only those of this subject.', 'merchant 5')),
    actor: Type.Optional(Line(200, 'Only those by this actor.', 'anna')),
    actorKind: Type.Optional(Word(KINDS, { description: 'Only those by actors of this kind.' })),
    action: Type.Optional(Line(100, 'Only those of this action.', 'merchant.suspend')),
    from: Type.Optional(Start('The first of them.')),
    to: Type.Optional(End('The last of them.')),
  }),
  output: Page(EntrySchema),
  columns: ['sequence', 'occurredAt', 'actor', 'origin', 'action', 'subject', 'reason', 'before', 'after'],
  roles: VERIFY,
  async run(caller, { cursor, limit = 50, subject, actor, actorKind, action, from, to }) {
    const filters = { subject, actor, actorKind, action, from, to };
    const [before] = readCursor('audit', filters, cursor) ?? [];
    const position = before === undefined ? null : BigInt(before);
    const filter = await filterOf(caller, filters as never);
    const rows = await pageOfAudit(caller.service.readDb, filter, position, limit + 1);
    return pageOf('audit', filters, rows.map(toJson), limit, ({ sequence }) => [sequence]);
  },
});

const head = reading({
  name: 'audit.head',
  summary: 'Get the hash of the newest change, to be published',
  method: 'GET',
  path: '/audit/head',
  command: 'audit head',
  input: Input({}),
  output: Type.Object({ sequence: Sequence, hash: Text, occurredAt: Time }),
  roles: VERIFY,
  async run({ service }: Caller) {
    const newest = await auditHead(service.readDb);
    if (!newest) throw new Problem('not-found', 'nothing was changed yet');
    return { ...newest, sequence: String(newest.sequence) };
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

export type BrokenGlass = Static<typeof Broken>;

const breakGlass = reading({
  name: 'audit.break-glass',
  summary: 'List operations of the last seven days that one person did with --break-glass, newest first',
  method: 'GET',
  path: '/audit/break-glass',
  command: 'audit break-glass',
  input: Input({}),
  output: Page(Broken),
  columns: ['sequence', 'occurredAt', 'actor', 'origin', 'action', 'subject', 'reason'],
  roles: ROLES,
  async run({ service }: Caller) {
    const since = new Date(service.clock().getTime() - SHOWN_DAYS * DAY_MS);
    const found = await pageOfBreakGlass(service.readDb, since, SHOWN_MAX);
    const items = found.map(({ sequence, occurredAt, actor, origin, action, subject, reason }) => {
      const until = new Date(occurredAt.getTime() + SHOWN_DAYS * DAY_MS);
      return { sequence: String(sequence), occurredAt, until, actor, origin, action, subject, reason };
    });
    return { items, nextCursor: null };
  },
});

export const audits = { list, head, breakGlass };

export const AUDIT = tableOf(...Object.values(audits));
