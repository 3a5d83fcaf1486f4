import Type, { type Static } from 'typebox';
import { changeIn } from '../agreement.ts';
import { audit, type Change } from '../audit/audit.ts';
import type { Operator } from '../context.ts';
import type { Queries } from '../db/pool.ts';
import { sql } from '../db/sql.ts';
import { SETTING } from '../figure.ts';
import { decimalsOf, toMinor, toNumber, toSum } from '../money.ts';
import { changing, reading, tableOf, twoPeople } from '../operation.ts';
import { requireChange } from '../problem.ts';
import { Currency, minorOf, Nullable, Opening, requireDecimals, Word } from '../schema.ts';

/** Settings of the operator, which people change while the service runs. */

const MODES = ['two-people', 'delay'] as const;

const FIELDS = {
  approvalMode: Word(MODES, {
    title: 'Approval by',
    'x-labels': { 'two-people': 'Another person', delay: 'A delay of 15 minutes' },
    description: '`two-people`: another person approves; `delay`: the same person, 15 minutes later.',
  }),
  approvalVouchers: Type.Integer({
    title: 'Approval above this many vouchers',
    minimum: 0,
    maximum: 1e7,
    description: 'Vouchers that one request changes.',
  }),
};
const Fields = Type.Object(FIELDS);

export type Settings = Static<typeof Fields> & {
  /**
   * What one person may move by hand in 24 hours, in major units of a currency. Other currencies have the
   * limit of their number of decimals.
   */
  readonly limits: Readonly<Record<string, number>>;
};

const DEFAULTS: Settings = { approvalMode: 'two-people', limits: {}, approvalVouchers: 100 };

/**
 * The limits of currencies by their number of decimals, in major units: some thousand dollars in the larger
 * ones of each kind (10,000 USD, 1,000,000 JPY, 3,000 KWD).
 */
const LIMITS = [1_000_000, 100_000, 10_000, 3_000, 300] as const;

/** Returns what one person may move by hand in 24 hours, in minor units. */
export function limitOf({ limits }: Pick<Settings, 'limits'>, currency: string): bigint {
  const decimals = decimalsOf(currency) ?? 0;
  return toMinor(limits[currency] ?? LIMITS[decimals] ?? 0, decimals);
}

export async function readSettings(db: Queries): Promise<Settings> {
  const rows = await db.query<{ name: string; value: string }>(
    sql`select name, value from operator_settings where name = any (${Object.keys(DEFAULTS)}::text[])`,
  );
  return {
    ...DEFAULTS,
    ...Object.fromEntries(rows.map(({ name, value }) => [name, JSON.parse(value) as unknown])),
  };
}

/** Lets one change of settings run at a time, so that the second change finds the result of the first. */
const LOCK = sql`select pg_advisory_xact_lock(7311990021)`;

const upsert = (name: string, value: unknown, now: Date) => sql`
insert into operator_settings (name, value, changed_at) values (${name}, ${JSON.stringify(value)}, ${now})
on conflict (name) do update set value = excluded.value, changed_at = excluded.changed_at`;

/**
 * Returns the value of a setting that is stored as a whole.
 * @param none the value of one that was never set
 */
export async function readSetting<Value>(db: Queries, name: string, none: Value): Promise<Value> {
  const [row] = await db.query<{ value: string }>(
    sql`select value from operator_settings where name = ${name}`,
  );
  return row ? (JSON.parse(row.value) as Value) : none;
}

/**
 * Changes a setting that is stored as a whole.
 * @param change returns the new value, and what the audit shows, from the value before
 * @returns the new value
 */
export async function changeSetting<Value>(
  operator: Operator,
  name: string,
  none: Value,
  change: (before: Value) => { readonly value: Value; readonly audited: Omit<Change, 'subject'> },
): Promise<Value> {
  const { db, clock } = operator.service;
  return db.transaction(async (tx) => {
    await tx.query(LOCK);
    const { value, audited } = change(await readSetting(tx, name, none));
    await tx.query(upsert(name, value, clock()));
    await audit(tx, operator, { ...audited, subject: 'settings' });
    return value;
  });
}

const LimitSchema = Type.Object({
  currency: Currency,
  amount: Opening(
    SETTING,
    Type.Number({ description: 'What one person may move by hand in 24 hours, in major units.' }),
  ),
  isDefault: Type.Boolean({ description: 'Whether it was not set.' }),
});

const SettingsSchema = Type.Object({
  ...FIELDS,
  limits: Type.Array(LimitSchema, {
    description: 'Of the currencies of products, and of those that were set.',
  }),
});

/** Returns the settings as every door shows them. */
async function toJson(
  db: Queries,
  { limits, ...settings }: Settings,
): Promise<Static<typeof SettingsSchema>> {
  const used = await db.query<{ currency: string }>(sql`select distinct currency from products`);
  const currencies = new Set([...used.map(({ currency }) => currency), ...Object.keys(limits)]);
  const limitJson = (currency: string) => ({
    currency,
    amount: toNumber({ minor: limitOf({ limits }, currency), decimals: decimalsOf(currency) ?? 0 }),
    isDefault: limits[currency] === undefined,
  });
  return { ...settings, limits: [...currencies].sort().map(limitJson) };
}

const show = reading({
  name: 'settings.show',
  summary: 'Get the settings of the operator',
  path: '/settings',
  input: {},
  output: SettingsSchema,
  roles: ['owner', 'finance', 'operations', 'auditor'],
  run: async ({ service: { db } }) => toJson(db, await readSettings(db)),
});

const set = changing({
  name: 'settings.set',
  summary: 'Change settings of the operator; those left out stay as they are',
  method: 'PATCH',
  path: '/settings',
  input: { ...Type.Partial(Fields).properties },
  output: SettingsSchema,
  roles: ['owner'],
  approval: twoPeople({ why: 'They decide what needs two people.' }),
  agreement: {
    sentence:
      'Approve by {mode} instead of {modeBefore}, and more than {vouchers} vouchers instead of {vouchersBefore}',
    of(asked) {
      const { before, after } = changeIn(asked);
      return {
        ...{ mode: after['approvalMode'], modeBefore: before['approvalMode'] },
        ...{ vouchers: after['approvalVouchers'], vouchersBefore: before['approvalVouchers'] },
        link: '/settings',
      };
    },
  },
  async run(caller, wanted) {
    const { db, clock } = caller.service;
    requireChange(wanted, 'approvalMode');
    return db.transaction(async (tx) => {
      await tx.query(LOCK);
      const before = await readSettings(tx);
      for (const [name, value] of Object.entries(wanted)) await tx.query(upsert(name, value, clock()));
      const after = await readSettings(tx);
      const { limits: _before, ...old } = before;
      const { limits: _after, ...now } = after;
      await audit(tx, caller, { action: 'settings.set', subject: 'settings', before: old, after: now });
      return toJson(tx, after);
    });
  },
});

const setLimit = changing({
  name: 'settings.limit',
  title: 'Change',
  summary: 'Set how much one person may move by hand in 24 hours, in a currency',
  path: '/settings/limits/:currency',
  input: {
    currency: Currency,
    amount: Nullable(Type.Number({ minimum: 0, maximum: 1e12 }), {
      description: 'In major units; null: the default of the currency.',
    }),
  },
  output: SettingsSchema,
  roles: ['owner'],
  approval: twoPeople({ why: 'It decides what needs two people.' }),
  agreement: {
    sentence: 'Let one person move {after} by hand in 24 hours, instead of {before}',
    of(asked) {
      const { before, after } = changeIn(asked);
      return { before: before['amount'], after: after['amount'], link: '/settings' };
    },
  },
  async run(caller, { currency, amount }) {
    requireDecimals(currency);
    if (amount !== null && amount !== 0) minorOf(amount, currency, 'amount');
    await changeSetting<Settings['limits']>(caller, 'limits', {}, (before) => {
      const { [currency]: _old, ...others } = before;
      const limits = amount === null ? others : { ...others, [currency]: amount };
      const shown = (of: Settings['limits']) => ({
        amount: toSum(currency, limitOf({ limits: of }, currency)),
      });
      const audited = { action: 'settings.limit', before: shown(before), after: shown(limits) };
      return { value: limits, audited };
    });
    const { db } = caller.service;
    return toJson(db, await readSettings(db));
  },
});

export const OPERATIONS = tableOf(show, set, setLimit);
