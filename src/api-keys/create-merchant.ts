import Type from 'typebox';
import { changeIn } from '../agreement.ts';
import { audit, type Change } from '../audit/audit.ts';
import { type Operator, PERMISSIONS, type Permission } from '../context.ts';
import { sql } from '../db/sql.ts';
import { bookTopUp } from '../merchants/floats.ts';
import { MerchantName, PermissionWord, SETTINGS, subjectOf } from '../merchants/merchants.ts';
import { ABOVE_LIMIT, changing, tableOf, twoPeople } from '../operation.ts';
import { MANAGE, MONEY } from '../principal.ts';
import { invalid, Problem } from '../problem.ts';
import { DEFAULT_PRODUCT, requireProduct } from '../products/products.ts';
import { AMOUNT_MAX, Currency, MerchantId, minorOf, Numbered, Secret, Text } from '../schema.ts';
import { makeKey, type NewKey, TILL_SCOPES } from './keys.ts';

/** The first key of a merchant, which is created with it. */

/** The permissions of a new merchant. `update-redemption` is granted separately. */
const NEW_MERCHANT: readonly Permission[] = ['generate', 'download', 'activate', 'balance', 'redeem'];
const EXTRA = PERMISSIONS.filter((each) => !NEW_MERCHANT.includes(each));

type CreateMerchant = {
  readonly name: string;
  /** Permissions in addition to those of every new merchant. */
  readonly permit: readonly Permission[];
  readonly opaque: boolean;
  readonly productId: number;
  readonly language?: string | null | undefined;
  /** The scopes of its first key; left out: all permissions. */
  readonly scopes?: readonly Permission[] | undefined;
  readonly float?: { readonly currency: string; readonly amountMinor: bigint } | undefined;
};

/** Creates a merchant with its first key and, on request, money on its float, in one transaction. */
export async function createMerchant(
  operator: Operator,
  wanted: CreateMerchant,
): Promise<{ id: number } & NewKey> {
  const { service } = operator;
  const now = service.clock();
  return service.db.transaction(async (tx) => {
    const permissions = [...new Set([...NEW_MERCHANT, ...wanted.permit])];
    const { name, opaque, productId, language = null, float } = wanted;
    const [product] = await tx.query<{ code: string }>(
      sql`select code from products where id = ${productId}`,
    );
    const [row] = await tx.query<{ id: number }>(sql`
insert into merchants (name, permissions, opaque, default_product_id, language, created_at)
values (${name}, ${permissions}, ${opaque}, ${productId}, ${language}, ${now}) returning id`);
    if (!row || !product) throw new Error('a merchant was inserted, and no row came back');
    const { key, change } = await makeKey(tx, row.id, now, { scopes: wanted.scopes ?? null });
    const changes: Change[] = [
      {
        action: 'merchant.create',
        subject: subjectOf(row.id),
        after: { name, permissions, opaque, product: product.code, language },
      },
      change,
    ];
    if (float) {
      const { change: topUp } = await bookTopUp(service, tx, { merchantId: row.id, ...float });
      if (topUp) changes.push(topUp);
    }
    await audit(tx, operator, ...changes);
    return { id: row.id, ...key };
  });
}

const create = changing({
  name: 'merchant.create',
  summary: 'Create a merchant with its first API key, whose secret is shown once',
  description:
    'The first key of a merchant that one person creates alone can neither generate vouchers nor download their ' +
    'codes. Two people make one that can, or the merchant itself in its portal.',
  path: '/merchants',
  input: {
    name: MerchantName,
    permit: Type.Optional(
      Type.Array(PermissionWord, {
        title: 'Extra permissions',
        uniqueItems: true,
        description: 'Permissions in addition to those that every merchant has.',
        'x-choices': { operator: EXTRA, merchant: EXTRA },
      }),
    ),
    float: Type.Optional(
      Type.Number({
        title: 'First top-up',
        'x-roles': MONEY,
        minimum: 0,
        maximum: AMOUNT_MAX,
        description: 'Money to put on its float, in major units.',
        examples: [100],
      }),
    ),
    currency: Type.Optional(Type.String({ ...Currency, 'x-roles': MONEY })),
    ...SETTINGS,
  },
  output: Type.Object({ id: Numbered(MerchantId), name: Text, keyId: Text, secret: Secret }),
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
    const { name, permit = [], opaque = false, language, currency = product.currency } = input;
    if (input.float && !MONEY.some((role) => caller.principal.roles.includes(role)))
      throw new Problem(
        'forbidden',
        `float needs one of the roles ${MONEY.join(', ')}: leave it out, and have it topped up`,
      );
    if (input.currency !== undefined && input.float === undefined)
      throw invalid('currency', 'dependent', 'needs `float`');
    const made = await createMerchant(caller, {
      name,
      permit,
      opaque,
      language,
      productId: product.id,
      // One person alone makes a key that shows no codes.
      scopes: caller.isAgreed ? undefined : TILL_SCOPES,
      ...(input.float && {
        float: { currency, amountMinor: minorOf(input.float, currency, 'float') },
      }),
    });
    return { id: made.id, name, keyId: made.keyId, secret: made.secret };
  },
});

export const OPERATIONS = tableOf(create);
