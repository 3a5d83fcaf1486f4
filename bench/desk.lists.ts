import { maskCode } from '../src/ledger/transaction.ts';
import { DAY_MS, isoDay } from '../src/time.ts';
import { codeOf } from './fill.ts';
import type { Stage } from './stage.ts';

/** The lists of the operator API, filter by filter, as paths below /operator/v1. */

export type Call = { readonly path: string; readonly body?: object };
/** One of several requests that differ in the thing that they name. */
type Maker = (turn: number) => Call;

const VOUCHER_STATES = ['ACTIVE', 'REDEEMED', 'INACTIVE', 'BLOCKED', 'EXPIRED', 'REPLACED', 'CANCELED'];
/** The smallest number of requests about each kind of thing. */
const SAMPLES = 50;

const get =
  (path: string): Maker =>
  () => ({ path });

/** The date of a day in the past, such as 2026-11-22. */
export const daysAgo = (back: number) => isoDay(Date.now() - back * DAY_MS);

/** Things of the database by which lists can be filtered. The busiest merchant is the first. */
async function sample(stage: Stage) {
  const pick = async (text: string): Promise<(turn: number) => string> => {
    const { rows } = await stage.owner.query({ text: `${text} limit ${SAMPLES}`, rowMode: 'array' });
    return (turn) => String(rows[turn % rows.length]?.[0] ?? '1');
  };
  const spread = 'order by hashint8extended(';
  return {
    merchant: await pick('select id from bench.merchants order by place'),
    batch: await pick(`select transaction_id from batches b join bench.batches using (id) ${spread}id, 1)`),
    serial: await pick(
      `select (select min(serial_number) from vouchers v where v.batch_id = b.id) from bench.batches b
        ${spread}id, 2)`,
    ),
    transaction: await pick(
      `select id from claims where operation = 'redeem' and reference like 'desk-%5-2'`,
    ),
    used: await pick(`select merchant_id || ' ' || reference from claims where reference like 'desk-%7-1'`),
    endpoint: await pick('select id from webhook_endpoints order by id'),
    settlement: await pick(`select id from settlements ${spread}id, 1)`),
    job: await pick('select max(job_id) from job_rows'),
    masked: (turn: number) => maskCode(codeOf(turn * 7919)),
    code: (turn: number) => codeOf(turn * 997),
  };
}

type Things = Awaited<ReturnType<typeof sample>>;
type Calls = Readonly<Record<string, Maker>>;

const by =
  (path: string, value: (turn: number) => string): Maker =>
  (turn) => ({ path: path + encodeURIComponent(value(turn)) });
const find =
  (body: (turn: number) => object): Maker =>
  (turn) => ({ path: '/vouchers/find', body: { reason: 'bench', ...body(turn) } });
const days = (turn: number) => daysAgo(3 + turn * 6);

const moneyCalls = (of: Things): Calls => ({
  merchants: get('/merchants'),
  'merchants, a frequent word': get('/merchants?name=bakery'),
  'merchants, one': by('/merchants?name=', (turn) => `books ${turn * 7}`),
  'merchants, none': get('/merchants?name=nobody'),
  merchant: by('/merchants/', of.merchant),
  'keys of a merchant': by('/api-keys?merchantId=', of.merchant),
  'floats of a merchant': by('/floats?merchantId=', of.merchant),
  'low floats': get('/floats/low'),
  products: get('/products'),
  tokens: get('/tokens'),
  users: get('/users'),
  'users of a merchant': by('/users?merchantId=', of.merchant),
  settlements: get('/settlements'),
  'settlements of a merchant': by('/settlements?merchantId=', of.merchant),
  ...each(['DRAFT', 'APPROVED', 'PAID'], 'settlements', '/settlements?state='),
  'drafts of a merchant': by('/settlements?state=DRAFT&merchantId=', of.merchant),
  settlement: by('/settlements/', of.settlement),
  disputes: get('/disputes'),
  'open disputes': get('/disputes?open=true'),
  'disputes of a merchant': by('/disputes?merchantId=', of.merchant),
  'statements of the bank': get('/bank/statements'),
  'statements of an account without any': get('/bank/statements?account=Quiet'),
  'entries of the bank': get('/bank/entries'),
  'open entries of the bank': get('/bank/entries?open=true'),
  'entries of an account without any': get('/bank/entries?account=Quiet'),
  'movements of the bank': get('/bank/movements'),
  'open movements of the bank': get('/bank/movements?open=true'),
  jobs: get('/jobs'),
  'rows of a job': (turn) => ({ path: `/jobs/${of.job(turn)}/rows` }),
  approvals: get('/approvals'),
  'waiting approvals': get('/approvals?waiting=true'),
  webhooks: get('/webhooks'),
  'webhooks of a merchant': by('/webhooks?merchantId=', of.merchant),
  deliveries: (turn) => ({ path: `/webhooks/${of.endpoint(turn)}/deliveries` }),
  'failed deliveries': (turn) => ({ path: `/webhooks/${of.endpoint(turn)}/deliveries?state=FAILED` }),
  'pending deliveries': (turn) => ({ path: `/webhooks/${of.endpoint(turn)}/deliveries?state=PENDING` }),
});

const auditCalls = (): Calls => ({
  changes: get('/audit'),
  'changes of a subject': by('/audit?subject=', (turn) => `merchant ${turn * 10}`),
  'changes by an actor': by('/audit?actor=', (turn) => `person ${turn % 40}`),
  'changes by nobody': get('/audit?actor=nobody'),
  'changes by a kind of actor': get('/audit?actorKind=user'),
  'changes by a rare kind of actor': get('/audit?actorKind=command-line'),
  'changes of an action': get('/audit?action=voucher.block'),
  'changes of a rare action': get('/audit?action=merchant.create'),
  'changes of an action by an actor': get('/audit?action=voucher.block&actor=person%203'),
  'changes since a day': by('/audit?from=', days),
  'changes until a day': by('/audit?to=', days),
  'changes of a subject until a day': by('/audit?subject=merchant%205&to=', days),
  'changes that broke the glass': get('/audit/break-glass'),
});

const voucherCalls = (of: Things): Calls => ({
  batches: get('/batches'),
  'batches of a merchant': by('/batches?merchantId=', of.merchant),
  ...each(['PROCESSING', 'CANCELED', 'COMPLETED'], 'batches', '/batches?status='),
  'canceled batches of a merchant': by('/batches?status=CANCELED&merchantId=', of.merchant),
  batch: by('/batches/', of.batch),
  'exports of a batch': (turn) => ({ path: `/batches/${of.batch(turn)}/exports` }),
  vouchers: get('/vouchers'),
  'vouchers of a batch': by('/vouchers?batch=', of.batch),
  ...each(VOUCHER_STATES, 'vouchers', '/vouchers?state='),
  'blocked vouchers of a batch': by('/vouchers?state=BLOCKED&batch=', of.batch),
  'voucher and its history': by('/vouchers/', of.serial),
  'find by code': find((turn) => ({ code: of.code(turn) })),
  'find by masked code': find((turn) => ({ masked: of.masked(turn) })),
  'find by reference': find((turn) => {
    const [merchantId, reference] = of.used(turn).split(' ');
    return { merchantId, reference };
  }),
  'find by transaction': find((turn) => ({ transactionId: of.transaction(turn) })),
  'find by batch': find((turn) => ({ batch: of.batch(turn) })),
});

const journalCalls = (of: Things): Calls => ({
  transactions: get('/transactions'),
  'transactions of a merchant': by('/transactions?merchantId=', of.merchant),
  'transactions of a voucher': by('/transactions?serialNumber=', of.serial),
  'transactions of a voucher and a merchant': (turn) => ({
    path: `/transactions?serialNumber=${of.serial(turn)}&merchantId=${of.merchant(turn)}`,
  }),
  'transactions until a day': by('/transactions?to=', days),
  'transactions of a merchant until a day': (turn) => ({
    path: `/transactions?merchantId=${of.merchant(turn)}&to=${days(turn)}`,
  }),
  transaction: by('/transactions/', of.transaction),
  declines: get('/declines'),
  'declines of a merchant': by('/declines?merchantId=', of.merchant),
  'declines of a voucher': by('/declines?serialNumber=', of.serial),
  'days of the books': get('/books/days'),
});

/** Every list and look-up by its name. */
export async function makeCalls(stage: Stage): Promise<Calls> {
  const of = await sample(stage);
  return { ...moneyCalls(of), ...auditCalls(), ...voucherCalls(of), ...journalCalls(of) };
}

function each(values: readonly string[], what: string, path: string): Record<string, Maker> {
  return Object.fromEntries(values.map((value) => [`${what}, ${value}`, get(path + value)] as const));
}
