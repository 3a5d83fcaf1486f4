import Type, { type Static } from 'typebox';
import { reading, tableOf } from '../operation.ts';
import { Page } from '../page.ts';
import { SEE_TOKENS } from '../principal.ts';
import { Count, NullableTime, Text, Word } from '../schema.ts';
import { listKeyRing } from './rotate.ts';

/** The key ring, as people see it. */

const RingKey = Type.Object({
  keyId: Text,
  state: Word(['unused', 'in use', 'being replaced', 'retired', 'dropped'] as const),
  inKeyRing: Type.Boolean({ title: 'In the key ring' }),
  since: NullableTime,
  vouchers: Count,
  webhookSecrets: Count,
});

export type RingKeyInfo = Static<typeof RingKey>;

const show = reading({
  name: 'keyring.show',
  summary: 'List each key of the key ring, and what is sealed under it',
  path: '/keyring',
  input: {},
  output: Page(RingKey),
  roles: SEE_TOKENS,
  run: async ({ service }) => ({ items: [...(await listKeyRing(service))], nextCursor: null }),
});

export const keyring = { show };

export const KEYRING = tableOf(show);
