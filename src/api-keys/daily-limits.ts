import Type, { type Static } from 'typebox';
import { audit } from '../audit/audit.ts';
import type { Context } from '../context.ts';
import { isKeyId } from '../credentials.ts';
import type { Queries } from '../db/pool.ts';
import { type Sql, sql } from '../db/sql.ts';
import { none, SETTING } from '../figure.ts';
import { newId } from '../ledger/id.ts';
import { listing } from '../listing.ts';
import { currencyOf, FloatCurrency } from '../merchants/floats.ts';
import { requireMerchant } from '../merchants/merchants.ts';
import { toSum } from '../money.ts';
import { alone, type Caller, changing, tableOf } from '../operation.ts';
import { MANAGE, SEE_VOUCHERS } from '../principal.ts';
import { notFound, Problem, requireOneServer } from '../problem.ts';
import { type Limit, OverLimit } from '../refusal.ts';
import { columnsOf } from '../row.ts';
import {
  Amount,
  MerchantId,
  Money,
  minorOf,
  Nullable,
  requireDecimals,
  Text,
  Time,
  toId,
  Word,
} from '../schema.ts';
import { KeyId } from './keys.ts';

/**
 * Daily limits: how much a merchant, or one of its keys, may issue and redeem in a day of the books. The
 * functions of sql/027-daily-limits.sql decide and count under them.
 */

const Flow = Word(['issue', 'redeem'] as const, {
  title: 'Limits',
  'x-labels': { issue: 'Issuing', redeem: 'Redemptions' },
  description:
    '`issue`: what generations and activations take from the float; `redeem`: what redemptions take.',
});

const LimitSchema = Type.Object({
  id: Type.Integer(),
  merchantId: MerchantId,
  keyId: Nullable(KeyId, { title: 'Key ID', description: 'Null: of the merchant, with all of its keys.' }),
  flow: Flow,
  currency: Text,
  amount: Money(SETTING, 'The most in a day of the books.'),
  used: Money(
    none('Counted at each call, so that a limit holds at once; the calls are transactions.'),
    'What was counted today.',
  ),
  refusedAt: Nullable(Time, { description: 'The first refusal of today.' }),
});

const columns = (now: Date): Sql =>
  columnsOf(LimitSchema, 'l', {
    used: sql`case when l.day < day_of(${now}) then 0 else l.used_minor end`,
    refusedAt: sql`case when l.day < day_of(${now}) then null else l.refused_at end`,
  });

/** What an order takes from a float, under the limits of its merchant. */
export type Issued = {
  readonly context: Context;
  readonly currency: string;
  readonly amountMinor: bigint;
};

const argumentsOf = ({ context: { merchant, keyId }, currency, amountMinor }: Issued): Sql => sql`
'issue', array[${merchant.id}::int], array[${isKeyId(keyId) ? keyId : null}::text], array[${currency}::text],
array[${amountMinor}::bigint]`;

/**
 * A limit refuses an order. Its transaction is undone, and with it all that it wrote: the refusal is noted
 * afterwards (`noted`).
 */
export class RefusedOrder extends OverLimit {
  readonly note: (db: Queries) => Promise<unknown>;

  constructor(limit: Limit, note: (db: Queries) => Promise<unknown>) {
    super(limit);
    this.note = note;
  }
}

/**
 * Waits for a request, and notes it if a limit has refused it.
 * @param db outside the request's transaction
 */
export async function noted<Result>(db: Queries, request: Promise<Result>): Promise<Result> {
  try {
    return await request;
  } catch (error) {
    if (error instanceof RefusedOrder) await error.note(db);
    throw error;
  }
}

/** Locks the limits of an order. @throws RefusedOrder if one of them refuses it */
export async function checkLimits(tx: Queries, issued: Issued): Promise<void> {
  const { now } = issued.context;
  const [row] = (await tx.query<{ outcome: Limit | 'ok' }>(sql`
select (within_limits(${argumentsOf(issued)}, array['ok'], ${now}))[1] as outcome`)) as [
    { outcome: Limit | 'ok' },
  ];
  const { outcome } = row;
  if (outcome !== 'ok') throw new RefusedOrder(outcome, (db) => countIssued(db, issued, outcome));
}

/** Counts an order that was accepted (`ok`), or notes that a limit has refused it. */
export async function countIssued(db: Queries, issued: Issued, outcome: Limit | 'ok'): Promise<void> {
  const { now } = issued.context;
  await db.query(sql`
select count_under_limits(${argumentsOf(issued)}, array[${outcome}::text], array[${newId(now)}::uuid],
  ${now})`);
}

const list = listing({
  name: 'daily-limit.list',
  summary: 'List daily limits, and what was counted under them today',
  path: '/daily-limits',
  filters: {
    merchantId: Type.Optional(MerchantId),
    reached: Type.Optional(Type.Boolean({ description: 'Only those that have refused a request today.' })),
  },
  item: LimitSchema,
  columns: ['merchantId', 'flow', 'keyId', 'amount', 'used', 'refusedAt'],
  roles: SEE_VOUCHERS,
  rows({ service: { readDb, clock } }, { merchantId, reached = false }, [after = 0], count) {
    const id = merchantId === undefined ? null : toId(merchantId, 'merchantId');
    return readDb.query<Static<typeof LimitSchema>>(sql`
select ${columns(clock())} from daily_limits l
where l.id > ${after} and (${id}::int is null or l.merchant_id = ${id})
  and (not ${reached} or l.refused_at is not null and l.day >= day_of(${clock()}))
order by l.id limit ${count}`);
  },
});

type Wanted = { readonly merchantId: number; readonly keyId: string | null; readonly flow: string };

/** Selects a limit of a currency. */
const matching = ({ merchantId, keyId, flow }: Wanted, currency: string): Sql => sql`
l.merchant_id = ${merchantId} and l.flow = ${flow} and l.currency = ${currency}
and coalesce(l.key_id, '') = ${keyId ?? ''}`;

/** Sets a limit, or removes it. Its count of today stays. @throws Problem */
async function setLimit(caller: Caller, wanted: Wanted, currency: string, amountMinor: bigint | null) {
  const { service } = caller;
  const { merchantId, keyId, flow } = wanted;
  const now = service.clock();
  await service.db.transaction(async (tx) => {
    const [key] =
      keyId === null
        ? []
        : await tx.query(sql`
select from api_keys where id = ${keyId} and merchant_id = ${merchantId}`);
    if (keyId !== null && !key) throw notFound(`key ${keyId} of merchant ${merchantId}`);
    await tx.query(sql`select from merchants where id = ${merchantId} for no key update`);
    const [old] = await tx.query<{ amount: bigint }>(sql`
select l.amount_minor as amount from daily_limits l where ${matching(wanted, currency)} for update`);
    if (caller.principal.merchantId !== null) requireLower(old?.amount, amountMinor);
    await tx.query(
      amountMinor === null
        ? sql`delete from daily_limits l where ${matching(wanted, currency)}`
        : sql`
insert into daily_limits (merchant_id, key_id, flow, currency, decimals, amount_minor, day)
values (${merchantId}, ${keyId}, ${flow}, ${currency}, ${requireDecimals(currency)}, ${amountMinor},
  day_of(${now}))
on conflict (merchant_id, flow, currency, coalesce(key_id, '')) do update set
  amount_minor = excluded.amount_minor`,
    );
    // The caches of all processes read the merchant again.
    await tx.query(sql`
update merchants set is_limited = exists (select from daily_limits where merchant_id = ${merchantId})
where id = ${merchantId}`);
    const sum = (minor: bigint | null | undefined) => (minor == null ? null : toSum(currency, minor));
    await audit(tx, caller, {
      action: 'daily-limit.set',
      subject: `merchant ${merchantId}`,
      before: { keyId, flow, currency, amount: sum(old?.amount) },
      after: { keyId, flow, currency, amount: sum(amountMinor) },
    });
  });
}

/** Keeps a merchant from raising or removing a limit of its key: only the operator may. */
function requireLower(before: bigint | undefined, after: bigint | null): void {
  if (after === null || (before !== undefined && after > before))
    throw new Problem('forbidden', 'you may lower a limit; the operator raises or removes it');
}

const set = changing({
  name: 'daily-limit.set',
  title: 'Set daily limit',
  summary: 'Limit what a merchant, or one of its keys, may issue or redeem in a day of the books (03)',
  path: '/daily-limits',
  input: {
    merchantId: MerchantId,
    keyId: Type.Optional({
      ...KeyId,
      description: 'The key that is limited; left out: the merchant, with all of its keys.',
    }),
    flow: Flow,
    amount: Nullable(Amount('In major units.'), { description: 'In major units; null: no limit.' }),
    currency: FloatCurrency,
  },
  output: Type.Object({
    merchantId: MerchantId,
    keyId: Nullable(KeyId),
    flow: Flow,
    currency: Text,
    amount: Nullable(Money(SETTING)),
  }),
  roles: MANAGE,
  approval: alone('It moves no money: floats and vouchers bound it too.'),
  risk: 'step-up',
  async run(caller, { merchantId, keyId = null, flow, amount, currency: given }) {
    const { id, product } = await requireMerchant(caller, merchantId, 'merchantId');
    requireOneServer(caller.service.buckets, 'there are no daily limits');
    const currency = await currencyOf(caller, given, product);
    const amountMinor = amount === null ? null : minorOf(amount, currency, 'amount');
    await setLimit(caller, { merchantId: id, keyId, flow }, currency, amountMinor);
    return { merchantId, keyId, flow, currency, amount: amountMinor };
  },
});

export const dailyLimits = { list, set };

export const OPERATIONS = tableOf(...Object.values(dailyLimits));
