import Type, { type Static } from 'typebox';
import { audit } from '../audit/audit.ts';
import type { Operator } from '../context.ts';
import type { Queries } from '../db/pool.ts';
import { sql } from '../db/sql.ts';
import { alone, changing, reading, tableOf } from '../operation.ts';
import { SEE } from '../principal.ts';
import { invalid } from '../problem.ts';
import { Line, Nullable } from '../schema.ts';
import { LOCK, upsert } from './settings.ts';

/** The letterhead of the operator: whom the documents for merchants come from. */

const NAME = 'letterhead';
const LINES_MAX = 5;

const FIELDS = {
  sender: Nullable(Line(100, 'The name of the operator.', 'Example Vouchers Ltd'), {
    description: 'The name of the operator, as documents and transfers state it; null: none.',
  }),
  addressLines: Type.Array(Line(100, 'A line of the address.', '1 High Street'), {
    title: 'Address',
    option: 'address',
    maxItems: LINES_MAX,
    description: 'The lines of the address.',
  }),
  vatNumber: Nullable(Line(30, 'The VAT number.', 'GB123456789'), { title: 'VAT number' }),
  contact: Nullable(Line(100, 'Where a merchant asks.', 'accounts@example.com'), {
    description: 'Where a merchant asks about a document; null: none.',
  }),
};
const Letterhead = Type.Object(FIELDS);
export type Letterhead = Static<typeof Letterhead>;

const NONE: Letterhead = { sender: null, addressLines: [], vatNumber: null, contact: null };

export async function readLetterhead(db: Queries): Promise<Letterhead> {
  const [row] = await db.query<{ value: string }>(
    sql`select value from operator_settings where name = ${NAME}`,
  );
  return row ? { ...NONE, ...(JSON.parse(row.value) as Partial<Letterhead>) } : NONE;
}

const show = reading({
  name: 'settings.letterhead',
  summary: 'Get the letterhead of the documents for merchants',
  path: '/settings/letterhead',
  input: {},
  output: Letterhead,
  roles: SEE,
  run: ({ service: { readDb } }) => readLetterhead(readDb),
});

const set = changing({
  name: 'settings.set-letterhead',
  title: 'Edit the letterhead',
  summary: 'Set the letterhead of the documents for merchants; what is left out stays as it is',
  description: 'Documents that exist already keep theirs.',
  method: 'PATCH',
  path: '/settings/letterhead',
  input: { ...Type.Partial(Letterhead).properties },
  output: Letterhead,
  roles: ['owner'],
  approval: alone('It moves no money: it is printed on statements, which name no account of the operator.'),
  async run(caller, wanted) {
    if (Object.keys(wanted).length === 0)
      throw invalid('sender', 'required', 'or another field is required: there is nothing to change');
    return setLetterhead(caller, wanted);
  },
});

/** Sets parts of the letterhead. @returns all of it */
export async function setLetterhead(operator: Operator, wanted: Partial<Letterhead>): Promise<Letterhead> {
  const { db, clock } = operator.service;
  return db.transaction(async (tx) => {
    await tx.query(LOCK);
    const before = await readLetterhead(tx);
    const after = { ...before, ...wanted };
    await tx.query(upsert(NAME, JSON.stringify(after), clock()));
    await audit(tx, operator, { action: 'settings.set-letterhead', subject: 'settings', before, after });
    return after;
  });
}

export const LETTERHEAD = tableOf(show, set);
