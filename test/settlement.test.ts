import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import Schema from 'typebox/schema';
import { describeDialect } from '../docs/generate/openapi.ts';
import { closeDays } from '../src/books/close.ts';
import type { Context, Operator } from '../src/context.ts';
import { VARIANT_A } from '../src/http/variant-a/routes.ts';
import { reconcile } from '../src/ledger/reconcile.ts';
import { toText } from '../src/money.ts';
import { updateRedemption } from '../src/redemptions/update.ts';
import { approve, requireFourEyes } from '../src/settlement/approve.ts';
import { answer, dispute } from '../src/settlement/disputes.ts';
import { drawStatement } from '../src/settlement/document.ts';
import { draftAll, draftSettlements } from '../src/settlement/draft.ts';
import { DAY_ENDS, shareOf } from '../src/settlement/fees.ts';
import { giveBack, pay } from '../src/settlement/pay.ts';
import { makePayoutFile, readAccounts } from '../src/settlement/payout-file.ts';
import { disputesOf, documentsOf, getSettlement, linesOf } from '../src/settlement/settlements.ts';
import { makeTerms } from '../src/settlement/terms.ts';
import { type Ledger, openLedger, sell, spend } from './books.ts';
import { schemaCheck } from './verifiers.ts';

const IBAN = 'DE89370400440532013000';

type Scene = { ledger: Ledger; issuer: Context; shop: Context };

async function open(t: TestContext): Promise<Scene> {
  const ledger = await openLedger(t, '2026-03-01T09:00:00Z');
  const issuer = await ledger.merchant();
  const shop = await ledger.merchant(0n);
  return { ledger, issuer, shop };
}

async function terms(operator: Operator, merchantId: number, more: object = {}): Promise<void> {
  const period = {
    period: 'day',
    leastPayout: '0',
    delayDays: 3,
    payee: 'House bank',
    payeeLast4: '3000',
  } as const;
  const rates = { commissionPpm: 25_000, vatPpm: 200_000 };
  await makeTerms(operator, {
    merchantId,
    productId: 0,
    product: null,
    validFrom: '2026-03-01',
    ...rates,
    ...period,
    ...more,
  });
}

/** Closes what is due. A transaction of another test on the same server may delay that a moment. */
async function close({ operator }: Ledger): Promise<string[]> {
  for (let tries = 0; ; tries++) {
    const { closed, waiting } = await closeDays(operator, { dayEnds: DAY_ENDS });
    if (closed.length === 0 && tries < 600 && /has not ended/.test(waiting?.reason ?? '')) {
      await sleep(50);
      continue;
    }
    assert.deepEqual(
      closed.flatMap(({ failed }) => failed),
      [],
    );
    return closed.map(({ day }) => day);
  }
}

/** A day on which the shop took 100.10, closed. */
async function settledDay({ ledger, issuer, shop }: Scene): Promise<void> {
  await terms(ledger.operator, shop.merchant.id);
  const [one, other] = await sell(issuer, 2, 60);
  assert.ok(one && other);
  await ledger.at('2026-03-01T10:00:00Z');
  await spend(shop, one, 60, 'sale 1');
  await spend(shop, other, 40.1, 'sale 2');
  await ledger.at('2026-03-02T00:20:00Z');
  assert.deepEqual(await close(ledger), ['2026-03-01']);
}

test('a share is rounded half away from zero', () => {
  const cases = [
    [1n, 500_000, 1n],
    [-1n, 500_000, -1n],
    [1n, 499_999, 0n],
    [10_010n, 25_000, 250n],
    [10_020n, 25_000, 251n],
    [-10_020n, 25_000, -251n],
    [0n, 25_000, 0n],
  ] as const;
  for (const [minor, ppm, expected] of cases) assert.equal(shareOf(minor, ppm), expected);
});

test('the close books commission and VAT, and the settlement is the sum of what was booked', async (t) => {
  const scene = await open(t);
  const { ledger, shop } = scene;
  await settledDay(scene);
  const fees = await ledger.sql<{ kind: string; amount: bigint; at: Date }>(
    `select kind::text, amount_minor as amount, occurred_at as at from scrip.journal where kind in ('FEE', 'FEE_VAT') order by kind`,
  );
  assert.deepEqual(
    fees.map(({ kind, amount, at }) => [kind, amount, at.toISOString()]),
    [
      ['FEE', 250n, '2026-03-01T23:59:59.999Z'],
      ['FEE_VAT', 50n, '2026-03-01T23:59:59.999Z'],
    ],
  );
  const [draft, ...others] = await draftSettlements(ledger.operator, { merchantId: shop.merchant.id });
  assert.ok(draft && others.length === 0);
  assert.deepEqual(
    [draft.state, draft.number, draft.firstDay, draft.lastDay, draft.dueOn, toText(draft.payable)],
    ['DRAFT', null, '2026-03-01', '2026-03-01', '2026-03-04', '97.10'],
  );
  const lines = await linesOf(ledger.started.service.db, draft);
  assert.deepEqual(
    lines.map(({ product, kind, rows, amount }) => [product, kind, rows, toText(amount)]),
    [
      ['DEFAULT', 'REDEMPTION', 2, '100.10'],
      ['DEFAULT', 'FEE', 1, '-2.50'],
      ['DEFAULT', 'FEE_VAT', 1, '-0.50'],
    ],
  );
  const { checks } = await reconcile(ledger.started.service);
  assert.deepEqual(
    checks.filter(({ ok }) => !ok),
    [],
  );
});

test('reversals that exceed a day give its commission back', async (t) => {
  const scene = await open(t);
  const { ledger, shop } = scene;
  await settledDay(scene);
  await ledger.at('2026-03-02T11:00:00Z');
  await updateRedemption(
    { ...shop, now: ledger.started.service.clock() },
    { reference: 'sale 2', amountUsed: 0 },
  );
  await ledger.at('2026-03-03T00:20:00Z');
  await close(ledger);
  const back = await ledger.sql<{ kind: string; amount: bigint }>(
    `select kind::text, amount_minor as amount from scrip.journal where kind::text like 'FEE%REVERSAL' order by kind`,
  );
  assert.deepEqual(back, [
    { kind: 'FEE_REVERSAL', amount: 100n },
    { kind: 'FEE_VAT_REVERSAL', amount: 20n },
  ]);
  const [draft] = await draftSettlements(ledger.operator, { merchantId: shop.merchant.id });
  assert.equal(draft && toText(draft.payable), '58.20');
});

test('approval freezes number and documents; the same settlement has the same bytes', async (t) => {
  const scene = await open(t);
  const { ledger, shop } = scene;
  const { db } = ledger.started.service;
  await settledDay(scene);
  const [draft] = await draftSettlements(ledger.operator, { merchantId: shop.merchant.id });
  assert.ok(draft);
  const { settlement, replayed } = await approve(ledger.operator, draft.id);
  assert.deepEqual(
    [settlement.state, settlement.number, replayed],
    ['APPROVED', `${shop.merchant.id}-2026-0001`, false],
  );
  assert.equal((await approve(ledger.operator, draft.id)).replayed, true);
  const documents = await documentsOf(db, settlement);
  assert.ok(documents);
  assert.equal(createHash('sha256').update(documents.csv).digest('hex'), settlement.contentHash);
  assert.match(documents.csv, /,DEFAULT,REDEMPTION,2,100\.10,/);
  assert.match(documents.csv, /,,PAYABLE,,97\.10,2026-03-04,[0-9a-f]{64}\r\n$/);
  const { number, approvedAt, contentHash } = settlement;
  assert.ok(number && approvedAt && contentHash);
  const lines = await linesOf(db, settlement);
  const again = await drawStatement({ ...settlement, number, approvedAt, contentHash }, lines);
  assert.ok(again.equals(documents.pdf));
  assert.equal(documents.pdf.toString('latin1', 0, 5), '%PDF-');
  assert.deepEqual(await draftAll(ledger.operator, undefined), []);
});

test('a payout is booked once, comes back once, and can then be paid again', async (t) => {
  const scene = await open(t);
  const { ledger, shop } = scene;
  const { operator } = ledger;
  await settledDay(scene);
  const [draft] = await draftSettlements(operator, { merchantId: shop.merchant.id });
  assert.ok(draft);
  const wanted = {
    settlementId: draft.id,
    reference: 'payout 1',
    bankReference: 'B-1',
    valueDate: '2026-03-02',
  };
  await assert.rejects(pay(operator, wanted), { code: '58' });
  await approve(operator, draft.id);
  const paid = await pay(operator, wanted);
  assert.deepEqual([paid.replayed, paid.settlement.state], [false, 'PAID']);
  const repeated = await pay(operator, wanted);
  assert.deepEqual([repeated.replayed, repeated.transactionId], [true, paid.transactionId]);
  await assert.rejects(pay(operator, { ...wanted, bankReference: 'B-2' }), { code: '94' });
  await assert.rejects(pay(operator, { ...wanted, reference: 'payout 2' }), { code: '58' });

  const back = { ...wanted, reference: 'return 1' };
  assert.equal((await giveBack(operator, back)).settlement.state, 'RETURNED');
  assert.equal((await giveBack(operator, back)).replayed, true);
  assert.equal((await pay(operator, { ...wanted, reference: 'payout 3' })).settlement.state, 'PAID');
  const [sum] = await ledger.sql<{ sum: string }>(
    `select sum(case kind when 'PAYOUT' then amount_minor else -amount_minor end)::text as sum from scrip.journal
     where kind in ('PAYOUT', 'PAYOUT_RETURN')`,
  );
  assert.equal(sum?.sum, '9710');
  await ledger.at('2026-03-03T00:20:00Z');
  await close(ledger);
  const { checks } = await reconcile(ledger.started.service);
  assert.deepEqual(
    checks.filter(({ ok }) => !ok),
    [],
  );
});

test('what is approved and not yet paid is not paid under the next settlement as well', async (t) => {
  const scene = await open(t);
  const { ledger, issuer, shop } = scene;
  const { operator } = ledger;
  await settledDay(scene);
  const [first] = await draftSettlements(operator, { merchantId: shop.merchant.id });
  assert.ok(first);
  await approve(operator, first.id);
  await ledger.at('2026-03-02T12:00:00Z');
  const [voucher] = await sell(issuer, 1, 10);
  assert.ok(voucher);
  await spend(shop, voucher, 10);
  await ledger.at('2026-03-03T00:20:00Z');
  await close(ledger);
  const [second] = await draftSettlements(operator, { merchantId: shop.merchant.id });
  assert.ok(second);
  assert.deepEqual(
    [toText(second.carried), toText(second.closing), toText(second.outstanding), toText(second.payable)],
    ['97.10', '106.80', '97.10', '9.70'],
  );
  await pay(operator, {
    settlementId: first.id,
    reference: 'p',
    bankReference: 'B',
    valueDate: '2026-03-03',
  });
  const { settlement } = await approve(operator, second.id);
  assert.deepEqual(
    [settlement.number, toText(settlement.payable)],
    [`${shop.merchant.id}-2026-0002`, '9.70'],
  );
});

test('less than the least payout is carried over', async (t) => {
  const scene = await open(t);
  const { ledger, issuer, shop } = scene;
  await terms(ledger.operator, shop.merchant.id, { leastPayout: '50' });
  const [voucher] = await sell(issuer, 1, 10);
  assert.ok(voucher);
  await spend(shop, voucher, 10);
  await ledger.at('2026-03-02T00:20:00Z');
  await close(ledger);
  const [draft] = await draftSettlements(ledger.operator, { merchantId: shop.merchant.id });
  assert.deepEqual(draft && [toText(draft.closing), toText(draft.payable)], ['9.70', '0.00']);
});

test('with four eyes on, the person who drafted cannot approve', async (t) => {
  const scene = await open(t);
  const { ledger, shop } = scene;
  const { operator } = ledger;
  await settledDay(scene);
  await requireFourEyes(operator, true);
  const [draft] = await draftSettlements(operator, { merchantId: shop.merchant.id });
  assert.ok(draft);
  await assert.rejects(approve(operator, draft.id), { code: '03' });
  const other = { ...operator, actor: { ...operator.actor, name: 'somebody else' } };
  assert.equal((await approve(other, draft.id)).settlement.approvedBy, 'somebody else');
});

test('terms are never edited, and never begin on a closed day', async (t) => {
  const scene = await open(t);
  const { ledger, shop } = scene;
  await settledDay(scene);
  const { id } = shop.merchant;
  await assert.rejects(terms(ledger.operator, id), { code: '17' });
  await terms(ledger.operator, id, { validFrom: '2026-03-02', commissionPpm: 0 });
  await assert.rejects(terms(ledger.operator, id, { validFrom: '2026-03-02' }), { code: '94' });
});

test('a day that is not closed cannot be settled', async (t) => {
  const scene = await open(t);
  await settledDay(scene);
  const { ledger, shop } = scene;
  await assert.rejects(
    draftSettlements(ledger.operator, { merchantId: shop.merchant.id, lastDay: '2026-03-02' }),
    {
      code: '17',
      message: /2026-03-02 is not closed/,
    },
  );
});

test('a dispute is written down and answered, and changes no number', async (t) => {
  const scene = await open(t);
  const { ledger, shop } = scene;
  const { db } = ledger.started.service;
  await settledDay(scene);
  const [draft] = await draftSettlements(ledger.operator, { merchantId: shop.merchant.id });
  assert.ok(draft);
  const doubt = { settlementId: draft.id, line: 'DEFAULT', comment: 'One sale is missing' };
  await assert.rejects(dispute(ledger.operator, doubt), { code: '58' });
  const { settlement } = await approve(ledger.operator, draft.id);
  const id = await dispute(ledger.operator, doubt);
  await answer(ledger.operator, id, 'It is in the next settlement');
  await assert.rejects(answer(ledger.operator, id, 'again'), { code: '60' });
  const [found] = await disputesOf(db, settlement);
  assert.deepEqual([found?.state, found?.answer], ['ANSWERED', 'It is in the next settlement']);
  assert.deepEqual(await getSettlement(db, draft.id), settlement);
});

test('each step is announced as the OpenAPI documents describe it', async (t) => {
  const scene = await open(t);
  const { ledger, shop } = scene;
  const { operator } = ledger;
  await ledger.sql(
    `insert into scrip.webhook_endpoints (merchant_id, url, secret, created_at) values (${shop.merchant.id}, 'https://example.com/', '\\x00', now())`,
  );
  await settledDay(scene);
  const [draft] = await draftSettlements(operator, { merchantId: shop.merchant.id });
  assert.ok(draft);
  await approve(operator, draft.id);
  const bank = { settlementId: draft.id, bankReference: 'B', valueDate: '2026-03-02' };
  await pay(operator, { ...bank, reference: 'p' });
  await giveBack(operator, { ...bank, reference: 'r' });
  const told = await ledger.sql<{ type: string; data: object }>(
    `select type, data from scrip.webhook_deliveries where type like 'settlement.%' order by event_id`,
  );
  assert.deepEqual(
    told.map(({ type }) => type),
    ['settlement.approved', 'settlement.paid', 'settlement.returned'],
  );
  type Described = Record<
    string,
    { post: { requestBody: { content: { 'application/json': { schema: object } } } } }
  >;
  const { webhooks } = describeDialect(VARIANT_A) as unknown as { webhooks: Described };
  for (const { type, data } of told) {
    const schema = webhooks[type]?.post.requestBody.content['application/json'].schema ?? assert.fail(type);
    const body = { type, timestamp: '2026-03-02T00:00:00.000Z', data };
    assert.ok(Schema.Compile(schema).Check(body), JSON.stringify(data));
  }
});

test('a payout file fits its schema, and no other account than that of the terms is paid', async (t) => {
  const scene = await open(t);
  const { ledger, shop } = scene;
  const { operator } = ledger;
  await settledDay(scene);
  const [draft] = await draftSettlements(operator, { merchantId: shop.merchant.id });
  assert.ok(draft);
  const { settlement } = await approve(operator, draft.id);
  const payer = { name: 'Operator & Co <Ltd>', iban: 'GB29NWBK60161331926819', bic: null };
  const accounts = readAccounts(`merchantId,name,iban,bic\n${shop.merchant.id},Shop,${IBAN},COBADEFFXXX\n`);
  const file = await makePayoutFile(operator, [settlement], { format: 'pain001', accounts, payer });
  assert.match(file, /<InstdAmt Ccy="USD">97\.10<\/InstdAmt>/);
  const check = schemaCheck('pain.001.001.09');
  assert.equal((await check(t, file)) ?? '', '');
  const broken = await check(t, file.replace('<PmtMtd>TRF</PmtMtd>', ''));
  if (broken !== undefined) assert.notEqual(broken, '');
  const csv = await makePayoutFile(operator, [settlement], { format: 'csv', accounts, payer });
  assert.match(csv, new RegExp(`,Shop,${IBAN},COBADEFFXXX,97\\.10,USD,2026-03-04\\r\\n$`));
  const other = readAccounts(`merchantId,name,iban,bic\n${shop.merchant.id},Shop,GB29NWBK60161331926819,\n`);
  await assert.rejects(
    makePayoutFile(operator, [settlement], { format: 'csv', accounts: other, payer }),
    /other characters/,
  );
  assert.throws(
    () => readAccounts('merchantId,name,iban,bic\n5,Shop,DE00370400440532013000,\n'),
    /line 2.*IBAN/,
  );
});
