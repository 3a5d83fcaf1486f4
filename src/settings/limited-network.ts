import Type from 'typebox';
import { sql } from '../db/sql.ts';
import { moved, SETTING } from '../figure.ts';
import { listingAll } from '../listing.ts';
import { toSum } from '../money.ts';
import { alone, changing, tableOf } from '../operation.ts';
import { MONEY, SEE } from '../principal.ts';
import { Amount, Currency, Money, minorOf, Nullable, Text, Time, Word } from '../schema.ts';
import { changeSetting } from './settings.ts';

/**
 * The amounts at which an operator must notify its authority of a limited network, and the payments of the
 * last twelve months (docs/how-to/settlement.md). They warn, and decline nothing.
 */

const NAME = 'network';

/** The amounts by currency, in minor units. Strings, since JSON carries no `bigint`. */
type Amounts = Readonly<Record<string, string>>;

const PAID = ['REDEMPTION', 'REDEMPTION_REVERSAL', 'REFUND'];

const NetworkSchema = Type.Object({
  currency: Text,
  amount: Money(SETTING, 'The amount at which the authority must be notified.'),
  paid: Money(
    moved({ account: 'SETTLEMENT', kind: PAID.join(), from: '{since}', to: '' }),
    'The redemptions of the last twelve months, less what was corrected or refunded.',
  ),
  since: Time,
  percent: Type.Integer({ description: 'What was paid, in percent of the amount, rounded down.' }),
  state: Word(['below', 'near', 'passed'] as const, { description: '`near`: 80 % is reached.' }),
});

const list = listingAll({
  name: 'settings.network',
  summary: 'List the amounts of a limited network, with the payments of the last twelve months',
  path: '/settings/network',
  item: NetworkSchema,
  columns: ['currency', 'amount', 'paid', 'percent', 'state'],
  roles: SEE,
  rows: ({ service: { readDb, clock } }) =>
    readDb.query(sql`
select currency, amount_minor as amount, paid_minor as paid,
  date_bin('15 minutes', ${clock()}::timestamptz - interval '12 months', 'epoch') as since,
  floor(paid_minor * 100.0 / amount_minor)::float8 as percent, state
from network_payments(${clock()}) order by currency`),
});

const set = changing({
  name: 'settings.network-amount',
  title: 'Set the amount',
  summary: 'Set the payments of twelve months, in a currency, at which a limited network must be notified',
  path: '/settings/network/:currency',
  input: {
    currency: Currency,
    amount: Nullable(Amount('In major units.'), { description: 'In major units; null: it is not watched.' }),
  },
  output: Type.Object({ currency: Text, amount: Nullable(Money(SETTING)) }),
  roles: MONEY,
  approval: alone('It only warns: it declines no payment.'),
  async run(caller, { currency, amount }) {
    const minor = amount === null ? null : minorOf(amount, currency, 'amount');
    await changeSetting<Amounts>(caller, NAME, {}, ({ [currency]: old, ...others }) => ({
      value: minor === null ? others : { ...others, [currency]: String(minor) },
      audited: {
        action: 'settings.network-amount',
        before: { currency, amount: old === undefined ? null : toSum(currency, BigInt(old)) },
        after: { currency, amount: minor === null ? null : toSum(currency, minor) },
      },
    }));
    return { currency, amount: minor };
  },
});

export const limitedNetwork = { list, set };

export const OPERATIONS = tableOf(...Object.values(limitedNetwork));
