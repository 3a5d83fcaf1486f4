import Type from 'typebox';
import { PERMISSIONS } from '../context.ts';
import { listFloats } from '../merchants/floats.ts';
import { findMerchant, type MerchantInfo, pageOfMerchants, suspendMerchant } from '../merchants/merchants.ts';
import { toNumber } from '../money.ts';
import { Word } from '../schema.ts';
import { pageOf, readCursor } from './cursor.ts';
import { Input, MerchantId, NullableTime, PAGE, Page, Reason, Text, Time, toId } from './fields.ts';
import { type Caller, operation, tableOf } from './operations.ts';
import { notFound } from './problem.ts';

const EVERYONE = ['owner', 'finance', 'support', 'operations', 'developer', 'auditor'] as const;
const MANAGERS = ['owner', 'operations'] as const;

const FloatBalance = Type.Object({ currency: Text, balance: Type.Number() });

const Merchant = Type.Object({
  id: MerchantId,
  name: Text,
  permissions: Type.Array(Word(PERMISSIONS)),
  opaque: Type.Boolean({ description: 'Whether an unknown code and a wrong PIN get the same answer.' }),
  product: Type.String({ description: 'The code of the product that it generates by default.' }),
  suspendedAt: NullableTime,
  createdAt: Time,
});

const MerchantWithFloats = Type.Object({ ...Merchant.properties, floats: Type.Array(FloatBalance) });

/** A merchant as every door shows it. */
function toJson(merchant: MerchantInfo) {
  return {
    ...merchant,
    id: String(merchant.id),
    permissions: merchant.permissions as (typeof PERMISSIONS)[number][],
  };
}

async function show({ service: { db } }: Caller, id: number) {
  const merchant = await findMerchant(db, id);
  if (!merchant) throw notFound(`merchant ${id}`);
  const floats = await listFloats(db, id);
  return {
    ...toJson(merchant),
    floats: floats.map(({ currency, balance }) => ({ currency, balance: toNumber(balance) })),
  };
}

export const listMerchants = operation({
  name: 'merchant.list',
  summary: 'List merchants',
  method: 'GET',
  path: '/merchants',
  command: 'merchant list',
  input: Input({ ...PAGE }),
  output: Page(Merchant),
  roles: EVERYONE,
  risk: 'plain',
  audit: null,
  effect: 'read',
  async run({ service }, { cursor, limit = 50 }) {
    const [after = 0] = readCursor('merchants', {}, cursor) ?? [];
    const rows = await pageOfMerchants(service.readDb, Number(after), limit + 1);
    return pageOf('merchants', {}, rows.map(toJson), limit, ({ id }) => [Number(id)]);
  },
});

export const showMerchant = operation({
  name: 'merchant.show',
  summary: 'Get a merchant and its floats',
  method: 'GET',
  path: '/merchants/:id',
  command: 'merchant show',
  input: Input({ id: MerchantId }),
  output: MerchantWithFloats,
  roles: EVERYONE,
  risk: 'plain',
  audit: null,
  effect: 'read',
  run: (caller, { id }) => show(caller, toId(id)),
});

function suspension(verb: 'suspend' | 'resume') {
  return operation({
    name: `merchant.${verb}`,
    summary: verb === 'suspend' ? 'Refuse all calls of a merchant (04)' : 'End the suspension of a merchant',
    method: 'POST',
    path: `/merchants/:id/${verb}`,
    command: `merchant ${verb}`,
    input: Input({ id: MerchantId, reason: Reason }),
    output: MerchantWithFloats,
    roles: MANAGERS,
    risk: 'plain',
    audit: `merchant.${verb}`,
    effect: 'change',
    async run(caller, { id }) {
      const merchantId = toId(id);
      if (!(await suspendMerchant(caller, merchantId, verb === 'suspend')))
        throw notFound(`merchant ${merchantId}`);
      return show(caller, merchantId);
    },
  });
}

export const MERCHANTS = tableOf(listMerchants, showMerchant, suspension('suspend'), suspension('resume'));
