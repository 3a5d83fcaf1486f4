import Type, { type Static } from 'typebox';
import { audit } from '../audit/audit.ts';
import type { Queries } from '../db/pool.ts';
import { changing, reading, tableOf, twoPeople } from '../operation.ts';
import { Page } from '../page.ts';
import { SEE_TOKENS } from '../principal.ts';
import { listKeyRing } from '../rotation/rotate.ts';
import { Count, Input, NullableTime, Reason, Text, Word } from '../schema.ts';
import { listSettings, lockSettings, upsertSetting } from './queries.ts';

/** Settings of the operator, which people change while the service runs. */

const MODES = ['two-people', 'delay'] as const;

export type Settings = {
  /**
   * The second approval that four eyes require: from another person, or from the same person after a delay.
   */
  readonly approvalMode: (typeof MODES)[number];
  /** Above this amount, in major units of any currency, a top-up or an adjustment needs approval. */
  readonly approvalAmount: number;
  /** Above this number of vouchers, a change of many vouchers needs approval. */
  readonly approvalVouchers: number;
};

const DEFAULTS: Settings = { approvalMode: 'two-people', approvalAmount: 10_000, approvalVouchers: 100 };

export async function readSettings(db: Queries): Promise<Settings> {
  const rows = await db.query<{ name: string; value: string }>(listSettings());
  return {
    ...DEFAULTS,
    ...Object.fromEntries(rows.map(({ name, value }) => [name, JSON.parse(value) as unknown])),
  };
}

const FIELDS = {
  approvalMode: Word(MODES, {
    description: '`two-people`: another person approves; `delay`: the same person, 15 minutes later.',
  }),
  approvalAmount: Type.Number({ minimum: 0, maximum: 1e12, description: 'In major units of any currency.' }),
  approvalVouchers: Type.Integer({
    minimum: 0,
    maximum: 1e7,
    description: 'Vouchers that one request changes.',
  }),
};

const SettingsSchema = Type.Object(FIELDS);

export const showSettings = reading({
  name: 'settings.show',
  summary: 'Get the settings of the operator',
  method: 'GET',
  path: '/settings',
  command: 'settings show',
  input: Input({}),
  output: SettingsSchema,
  roles: ['owner', 'finance', 'operations', 'auditor'],
  run: ({ service }) => readSettings(service.db),
});

export const setSettings = changing({
  name: 'settings.set',
  summary: 'Change settings of the operator; those left out stay as they are',
  method: 'PATCH',
  path: '/settings',
  command: 'settings set',
  input: Input({ ...Type.Partial(SettingsSchema).properties, reason: Reason }),
  output: SettingsSchema,
  roles: ['owner'],
  approval: twoPeople({ why: 'They decide what needs two people.' }),
  async run(caller, { reason: _reason, ...wanted }) {
    const { db, clock } = caller.service;
    return db.transaction(async (tx) => {
      await tx.query(lockSettings());
      const before = await readSettings(tx);
      for (const [name, value] of Object.entries(wanted))
        await tx.query(upsertSetting(name, JSON.stringify(value), clock()));
      const after = await readSettings(tx);
      await audit(tx, caller, { action: 'settings.set', subject: 'settings', before, after });
      return after;
    });
  },
});

export const SETTINGS = tableOf(showSettings, setSettings);

const RingKey = Type.Object({
  keyId: Text,
  state: Word(['unused', 'in use', 'being replaced', 'retired', 'dropped'] as const),
  inKeyRing: Type.Boolean(),
  since: NullableTime,
  vouchers: Count,
  webhookSecrets: Count,
});

export type RingKeyInfo = Static<typeof RingKey>;

const show = reading({
  name: 'keyring.show',
  summary: 'List each key of the key ring, and what is sealed under it',
  method: 'GET',
  path: '/keyring',
  command: 'keyring show',
  input: Input({}),
  output: Page(RingKey),
  roles: SEE_TOKENS,
  run: async ({ service }) => ({ items: [...(await listKeyRing(service))], nextCursor: null }),
});

export const keyring = { show };

export const KEYRING = tableOf(show);
