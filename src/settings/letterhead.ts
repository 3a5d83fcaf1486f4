import Type, { type Static } from 'typebox';
import type { Operator } from '../context.ts';
import type { Queries } from '../db/pool.ts';
import { alone, changing, reading, tableOf } from '../operation.ts';
import { SEE } from '../principal.ts';
import { requireChange } from '../problem.ts';
import { Line, Nullable } from '../schema.ts';
import { changeSetting, readSetting } from './settings.ts';

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
  return { ...NONE, ...(await readSetting<Partial<Letterhead>>(db, NAME, NONE)) };
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
    requireChange(wanted, 'sender');
    return setLetterhead(caller, wanted);
  },
});

/** Sets parts of the letterhead. @returns the whole letterhead */
export function setLetterhead(operator: Operator, wanted: Partial<Letterhead>): Promise<Letterhead> {
  return changeSetting<Letterhead>(operator, NAME, NONE, (stored) => {
    const before = { ...NONE, ...stored };
    const after = { ...before, ...wanted };
    return { value: after, audited: { action: 'settings.set-letterhead', before, after } };
  });
}

export const OPERATIONS = tableOf(show, set);
