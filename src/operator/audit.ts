import Type, { type Static } from 'typebox';
import { auditHead, type AuditEntry as Entry, pageOfAudit } from '../audit/list.ts';
import { Word } from '../schema.ts';
import { pageOf, readCursor } from './cursor.ts';
import { End, Input, Line, NullableText, PAGE, Page, Start, Text, Time, toEnd, toStart } from './fields.ts';
import { type Caller, reading, tableOf } from './operations.ts';
import { Problem } from './problem.ts';
import { VERIFY } from './rights.ts';

const Sequence = Type.String({
  pattern: '^[0-9]+$',
  description: 'The number of the entry: 1, 2, 3 and on.',
});
const Details = Type.Unsafe<Readonly<Record<string, unknown>> | null>({ type: ['object', 'null'] });

const EntrySchema = Type.Object({
  sequence: Sequence,
  occurredAt: Time,
  actorKind: Word(['command-line', 'token', 'user', 'service'] as const),
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
  action?: string | undefined;
  from?: string | undefined;
  to?: string | undefined;
};

function filterOf({
  subject = null,
  actor = null,
  action = null,
  from,
  to,
}: { [Name in keyof Filters]: Filters[Name] | null }) {
  return {
    subject,
    actor,
    action,
    from: from ? toStart(from, 'from') : null,
    until: to ? new Date(toEnd(to, 'to').getTime() + 1) : null,
  };
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
    action: Type.Optional(Line(100, 'Only those of this action.', 'merchant.suspend')),
    from: Type.Optional(Start('The first of them.')),
    to: Type.Optional(End('The last of them.')),
  }),
  output: Page(EntrySchema),
  roles: VERIFY,
  async run({ service }, { cursor, limit = 50, subject, actor, action, from, to }) {
    const filters = { subject, actor, action, from, to };
    const [before] = readCursor('audit', filters, cursor) ?? [];
    const position = before === undefined ? null : BigInt(before);
    const rows = await pageOfAudit(service.readDb, filterOf(filters as never), position, limit + 1);
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

export const audits = { list, head };

export const AUDIT = tableOf(list, head);
