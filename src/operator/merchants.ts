import Type, { type Static } from 'typebox';
import { changeIn } from '../agreement.ts';
import { TILL_SCOPES } from '../api-keys/keys.ts';
import { PERMISSIONS } from '../context.ts';
import { listFloats } from '../merchants/floats.ts';
import {
  changeMerchant,
  createMerchant as create,
  type MerchantInfo,
  pageOfMerchants,
  permitMerchant,
  requireMerchant,
  suspendMerchant,
} from '../merchants/merchants.ts';
import { toNumber } from '../money.ts';
import { ABOVE_LIMIT, alone, type Caller, changing, reading, tableOf, twoPeople } from '../operation.ts';
import { PAGE, Page, pageOf, readCursor } from '../page.ts';
import { MANAGE, MONEY, SEE_VOUCHERS } from '../principal.ts';
import { invalid, Problem } from '../problem.ts';
import { DEFAULT_PRODUCT, ProductCode, requireProduct } from '../products/products.ts';
import {
  AMOUNT_MAX,
  Currency,
  Input,
  Line,
  Major,
  MerchantId,
  minorOf,
  NullableTime,
  Positional,
  Reason,
  Secret,
  Text,
  Time,
  Word,
} from '../schema.ts';

const Permission = Word(PERMISSIONS, { description: 'A permission.', examples: ['update-redemption'] });
const Name = Line(200, 'The name of the merchant.', 'Corner shop');
const Opaque = Type.Boolean({ description: 'Whether an unknown code and a wrong PIN get the same answer.' });
const FloatBalance = Type.Object({ currency: Text, balance: Major() });

const MerchantSchema = Type.Object({
  id: MerchantId,
  name: Text,
  permissions: Type.Array(Permission),
  opaque: Opaque,
  product: Type.String({ description: 'The code of the product that it generates by default.' }),
  suspendedAt: NullableTime,
  createdAt: Time,
});
const MerchantWithFloats = Type.Object({ ...MerchantSchema.properties, floats: Type.Array(FloatBalance) });

export type Merchant = Static<typeof MerchantSchema>;
type MerchantDetails = Static<typeof MerchantWithFloats>;

function toJson(merchant: MerchantInfo): Merchant {
  return {
    ...merchant,
    id: String(merchant.id),
    permissions: [...merchant.permissions] as Merchant['permissions'],
  };
}

async function show(caller: Caller, id: string): Promise<MerchantDetails> {
  const merchant = await requireMerchant(caller, id);
  const floats = await listFloats(caller.service.db, merchant.id);
  return {
    ...toJson(merchant),
    floats: floats.map(({ currency, balance }) => ({ currency, balance: toNumber(balance) })),
  };
}

const createMerchant = changing({
  name: 'merchant.create',
  summary: 'Create a merchant with its first API key, whose secret is shown once',
  description:
    'The first key of a merchant that one person creates alone can neither generate vouchers nor download their ' +
    'codes. Two people make one that can, or the merchant itself in its portal.',
  method: 'POST',
  path: '/merchants',
  command: 'merchant create',
  input: Input({
    name: Name,
    permit: Type.Optional(
      Type.Array(Permission, {
        uniqueItems: true,
        description: 'Permissions in addition to those that every merchant has.',
      }),
    ),
    float: Type.Optional(
      Type.Number({
        minimum: 0,
        maximum: AMOUNT_MAX,
        description: 'Money to put on its float, in major units.',
        examples: [100],
      }),
    ),
    currency: Type.Optional(Currency),
    product: Type.Optional(ProductCode),
    opaque: Type.Optional(Opaque),
    reason: Reason,
  }),
  output: Type.Object({ id: MerchantId, name: Text, keyId: Text, secret: Secret }),
  roles: MANAGE,
  approval: twoPeople({
    why: 'Money on a float can be spent at once.',
    when: [ABOVE_LIMIT],
  }),
  agreement: {
    sentence: 'Create merchant {merchant} with {amount} on its float',
    of: (asked) => ({
      ...{ merchant: asked.input.name, amount: changeIn(asked, 'float.top-up').after['amount'] },
      ...{ permit: asked.input.permit, link: '/merchants' },
    }),
  },
  risk: 'step-up',
  status: 201,
  async run(caller, input) {
    const product = await requireProduct(caller.service.db, input.product ?? DEFAULT_PRODUCT);
    const { name, permit = [], opaque = false, currency = product.currency } = input;
    if (input.float && !MONEY.some((role) => caller.principal.roles.includes(role)))
      throw new Problem(
        'forbidden',
        `float needs one of the roles ${MONEY.join(', ')}: leave it out, and have it topped up`,
      );
    if (input.currency !== undefined && input.float === undefined)
      throw invalid('currency', 'dependent', 'needs `float`');
    const made = await create(caller, {
      name,
      permit,
      opaque,
      productId: product.id,
      // One person alone makes a key that shows no codes.
      scopes: caller.isAgreed ? undefined : TILL_SCOPES,
      ...(input.float && {
        float: { currency, amountMinor: minorOf(input.float, currency, 'float') },
      }),
    });
    return { id: String(made.id), name, keyId: made.keyId, secret: made.secret };
  },
});

const listMerchants = reading({
  name: 'merchant.list',
  summary: 'List merchants, oldest first',
  method: 'GET',
  path: '/merchants',
  command: 'merchant list',
  input: Input({
    ...PAGE,
    name: Type.Optional(
      Line(200, 'Only those whose name has words that begin with these, in capitals or not.', 'corner'),
    ),
  }),
  output: Page(MerchantSchema),
  columns: ['id', 'name', 'permissions', 'product', 'suspendedAt'],
  roles: SEE_VOUCHERS,
  async run({ service }, { cursor, limit = 50, name }) {
    const filters = { name };
    const [after = 0] = readCursor('merchants', filters, cursor) ?? [];
    const rows = await pageOfMerchants(service.readDb, Number(after), limit + 1, name ?? null);
    return pageOf('merchants', filters, rows.map(toJson), limit, ({ id }) => [Number(id)]);
  },
});

const showMerchant = reading({
  name: 'merchant.show',
  summary: 'Get a merchant and its floats',
  method: 'GET',
  path: '/merchants/:id',
  command: 'merchant show',
  input: Input({ id: MerchantId }),
  output: MerchantWithFloats,
  roles: SEE_VOUCHERS,
  run: (caller, { id }) => show(caller, id),
});

function suspension(verb: 'suspend' | 'resume') {
  return changing({
    name: `merchant.${verb}`,
    summary: verb === 'suspend' ? 'Refuse all calls of a merchant (04)' : 'End the suspension of a merchant',
    method: 'POST',
    path: `/merchants/:id/${verb}`,
    command: `merchant ${verb}`,
    input: Input({ id: MerchantId, reason: Reason }),
    output: MerchantWithFloats,
    roles: MANAGE,
    approval: alone('It moves no money, and can be undone.'),
    risk: verb === 'resume' ? 'step-up' : 'plain',
    async run(caller, { id }) {
      const merchant = await requireMerchant(caller, id);
      await suspendMerchant(caller, merchant.id, verb === 'suspend');
      return show(caller, id);
    },
  });
}

function permission(verb: 'permit' | 'forbid') {
  return changing({
    name: `merchant.${verb}`,
    summary: verb === 'permit' ? 'Give a merchant a permission' : 'Take a permission away from a merchant',
    method: 'POST',
    path: `/merchants/:id/${verb}`,
    command: `merchant ${verb}`,
    input: Input({ id: MerchantId, permission: Positional(Permission), reason: Reason }),
    output: MerchantWithFloats,
    roles: MANAGE,
    approval: alone('It can be taken back, and a key that is bound to scopes gets nothing by it.'),
    risk: verb === 'permit' ? 'step-up' : 'plain',
    async run(caller, input) {
      const merchant = await requireMerchant(caller, input.id);
      await permitMerchant(caller, merchant.id, input.permission, verb === 'permit');
      return show(caller, input.id);
    },
  });
}

const setMerchant = changing({
  name: 'merchant.set',
  summary: 'Rename a merchant, or change its settings',
  method: 'PATCH',
  path: '/merchants/:id',
  command: 'merchant set',
  input: Input({
    id: MerchantId,
    name: Type.Optional(Name),
    opaque: Type.Optional(Opaque),
    product: Type.Optional(ProductCode),
    reason: Reason,
  }),
  output: MerchantWithFloats,
  roles: MANAGE,
  approval: alone('It moves no money, and can be changed back.'),
  async run(caller, { id, name = null, opaque = null, product }) {
    if (name === null && opaque === null && product === undefined)
      throw invalid('name', 'required', 'or opaque or product is required: there is nothing to change');
    const merchant = await requireMerchant(caller, id);
    const productId = product === undefined ? null : (await requireProduct(caller.service.db, product)).id;
    await changeMerchant(caller, merchant.id, { name, opaque, productId });
    return show(caller, id);
  },
});

const suspendOne = suspension('suspend');
const resumeOne = suspension('resume');
const permitOne = permission('permit');
const forbidOne = permission('forbid');

export const merchants = {
  create: createMerchant,
  list: listMerchants,
  show: showMerchant,
  set: setMerchant,
  permit: permitOne,
  forbid: forbidOne,
  suspend: suspendOne,
  resume: resumeOne,
};

export const MERCHANTS = tableOf(...Object.values(merchants));
