import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findReport, makeReport } from '../../src/books/reports/reports.ts';
import { verifyBooks } from '../../src/books/verify.ts';
import type { AnyOperation } from '../../src/operation.ts';
import { approve as approveProposal } from '../../src/operations/approve.ts';
import { previewEffect } from '../../src/operations/effect.ts';
import { propose } from '../../src/operations/propose.ts';
import { OPERATIONS } from '../../src/operations/table.ts';
import { actorOf } from '../../src/principal.ts';
import { updateRedemption } from '../../src/redemptions/update.ts';
import { approve } from '../../src/settlement/approve.ts';
import { answer, dispute, disputesOf } from '../../src/settlement/disputes.ts';
import { draftSettlements } from '../../src/settlement/draft.ts';
import { shareOf } from '../../src/settlement/fees.ts';
import { pay } from '../../src/settlement/pay.ts';
import { getSettlement } from '../../src/settlement/settlements.ts';
import { linesOf } from '../../src/settlement/show.ts';
import { proveSound, sell, spend } from '../support/books.ts';
import { COMMAND_LINE } from '../support/harness.ts';
import { close, dollars, draftedDay, draftOf, openScene, settledDay, terms } from '../support/settlements.ts';

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

test('the close books commission and VAT, and the settlement is the sum of the entries', async (t) => {
  const scene = await openScene(t);
  const { ledger, shop } = scene;
  await settledDay(scene);
  const fees = await ledger.sql<{ kind: string; amount: bigint; at: Date }>(
    `
      select kind::text, amount_minor as amount, occurred_at as at from scrip.journal
      where kind in ('FEE', 'FEE_VAT') order by kind`,
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
    [draft.state, draft.number, draft.firstDay, draft.lastDay, draft.dueOn, dollars(draft.payable)],
    ['DRAFT', null, '2026-03-01', '2026-03-01', '2026-03-04', '97.10'],
  );
  const lines = await linesOf(ledger.started.service.db, draft);
  assert.deepEqual(
    lines.map(({ line, product, kind, rows, amount }) => [line, product, kind, rows, dollars(amount)]),
    [
      [1, 'DEFAULT', 'REDEMPTION', 2, '100.10'],
      [2, 'DEFAULT', 'FEE', 1, '-2.50'],
      [3, 'DEFAULT', 'FEE_VAT', 1, '-0.50'],
    ],
  );
  await proveSound(ledger.started.service);
});

test('reversals that exceed the redemptions of a day reverse their commission', async (t) => {
  const scene = await openScene(t);
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
    `
      select kind::text, amount_minor as amount from scrip.journal where kind::text like 'FEE%REVERSAL'
      order by kind`,
  );
  assert.deepEqual(back, [
    { kind: 'FEE_REVERSAL', amount: 100n },
    { kind: 'FEE_VAT_REVERSAL', amount: 20n },
  ]);
  const [draft] = await draftSettlements(ledger.operator, { merchantId: shop.merchant.id });
  assert.equal(draft && dollars(draft.payable), '58.20');
});

test('reversals of redemptions of earlier periods have a line of their own', async (t) => {
  const scene = await openScene(t);
  const { ledger, shop } = scene;
  const { operator } = ledger;
  const { db } = ledger.started.service;
  const merchantId = shop.merchant.id;
  const first = await draftedDay(scene);
  await approve(operator, first.id);
  await ledger.at('2026-03-02T11:00:00Z');
  const asking = { ...shop, now: ledger.started.service.clock() };
  await updateRedemption(asking, { reference: 'sale 2', amountUsed: 0 });
  const kind = findReport('R7');
  assert.ok(kind);
  const reversed = async (from: string) => {
    const { tables } = await makeReport(ledger.started.service, kind, { from, to: '2026-03-03', merchantId });
    const [table] = tables;
    const row = table?.rows.at(-1) ?? {};
    return ['reversals', 'reversed', 'earlierReversals', 'earlierReversed'].map((name) => row[name]);
  };
  // The day is open at first: its rows are read from the journal.
  for (const isClosed of [false, true]) {
    if (isClosed) {
      await ledger.at('2026-03-03T00:20:00Z');
      await close(ledger);
    }
    assert.deepEqual(await reversed('2026-03-01'), ['1', '40.10', '0', '0.00']);
    assert.deepEqual(await reversed('2026-03-02'), ['0', '0.00', '1', '40.10']);
  }
  const second = await draftOf(scene);
  const lines = (await linesOf(db, second)).map((line) => [line.kind, line.rows, dollars(line.amount)]);
  assert.deepEqual(lines, [
    ['EARLIER_REVERSAL', 1, '-40.10'],
    ['FEE_REVERSAL', 1, '1.00'],
    ['FEE_VAT_REVERSAL', 1, '0.20'],
  ]);
  await ledger.sql('update scrip.book_reversals set amount_minor = amount_minor + 1');
  assert.deepEqual(
    (await verifyBooks(ledger.started.service)).breaks.map(({ change, detail }) => [change, detail]),
    [
      ['aggregate', `reversals of merchant ${merchantId} in USD`],
      ['totals', 'reversals are not those that were closed'],
    ],
  );
});

test('an amount that is approved but not yet paid is not part of the next payout', async (t) => {
  const scene = await openScene(t);
  const { ledger, issuer, shop } = scene;
  const { operator } = ledger;
  const first = await draftedDay(scene);
  await approve(operator, first.id);
  await ledger.at('2026-03-02T12:00:00Z');
  const [voucher] = await sell(issuer, 1, 10);
  assert.ok(voucher);
  await spend(shop, voucher, 10);
  await ledger.at('2026-03-03T00:20:00Z');
  await close(ledger);
  const second = await draftOf(scene);
  assert.deepEqual(
    [dollars(second.carried), dollars(second.closing), dollars(second.outstanding), dollars(second.payable)],
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
    [settlement.number, dollars(settlement.payable)],
    [`${shop.merchant.id}-2026-0002`, '9.70'],
  );
});

test('an amount below the minimum payout is carried over', async (t) => {
  const scene = await openScene(t);
  const { ledger, issuer, shop } = scene;
  await terms(ledger.operator, shop.merchant.id, { minPayout: 50 });
  const [voucher] = await sell(issuer, 1, 10);
  assert.ok(voucher);
  await spend(shop, voucher, 10);
  await ledger.at('2026-03-02T00:20:00Z');
  await close(ledger);
  const [draft] = await draftSettlements(ledger.operator, { merchantId: shop.merchant.id });
  assert.deepEqual(draft && [dollars(draft.closing), dollars(draft.payable)], ['9.70', '0.00']);
});

test('terms are never edited, and never begin on a closed day', async (t) => {
  const scene = await openScene(t);
  const { ledger, shop } = scene;
  await settledDay(scene);
  const { id } = shop.merchant;
  await assert.rejects(terms(ledger.operator, id), { code: '17' });
  await terms(ledger.operator, id, { from: '2026-03-02', commission: 0 });
  await assert.rejects(terms(ledger.operator, id, { from: '2026-03-02' }), { code: '94' });
});

test('a day that is not closed cannot be settled', async (t) => {
  const scene = await openScene(t);
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

test('a dispute is recorded and answered, and does not change the settlement', async (t) => {
  const scene = await openScene(t);
  const { ledger } = scene;
  const { db } = ledger.started.service;
  const draft = await draftedDay(scene);
  const doubt = { settlementId: draft.id, line: 'DEFAULT', comment: 'One sale is missing' };
  await assert.rejects(dispute(ledger.operator, doubt), { code: '58' });
  const { settlement } = await approve(ledger.operator, draft.id);
  const id = await dispute(ledger.operator, doubt);
  await answer(ledger.operator, id, 'It is in the next settlement');
  await assert.rejects(answer(ledger.operator, id, 'again'), { code: 'not-found' });
  const [found] = await disputesOf(db, settlement);
  assert.deepEqual([found?.state, found?.answer], ['ANSWERED', 'It is in the next settlement']);
  assert.deepEqual(await getSettlement(db, draft.id), settlement);
});

test('a proposal to approve a draft is not approved after the draft was made again with other days', async (t) => {
  const scene = await openScene(t);
  const { ledger, issuer, shop } = scene;
  const { service } = ledger.started;
  const draftTo = (lastDay: string) =>
    draftSettlements(ledger.operator, { merchantId: shop.merchant.id, lastDay });
  await settledDay(scene);
  const [draft] = await draftTo('2026-03-01');
  assert.ok(draft);
  const find = (name: string) => OPERATIONS.find((each) => each.name === name) as AnyOperation;
  const caller = { service, principal: COMMAND_LINE, actor: actorOf(COMMAND_LINE, 'as agreed') };
  const input = { id: String(draft.id) };
  const operation = find('settlement.approve');
  const { effect, statement } = await previewEffect(operation, caller, input);
  assert.ok(statement);
  const proposed = await service.db.transaction((tx) =>
    propose(tx, operation, caller, { input, effect, statement }),
  );
  await ledger.at('2026-03-02T11:00:00Z');
  const [card] = await sell(issuer, 1, 60);
  assert.ok(card);
  await spend(shop, card, 60, 'sale 3');
  await ledger.at('2026-03-03T00:20:00Z');
  await close(ledger);
  await draftTo('2026-03-02');
  const checker = { ...caller, principal: { ...COMMAND_LINE, kind: 'break-glass' } as const };
  const approveIt = () => approveProposal(checker, Number(proposed.approval.id), { comment: null }, find);
  await assert.rejects(approveIt(), { code: 'effect-changed' });
  await draftTo('2026-03-01');
  await approveIt();
  const { state, approvedBy } = await getSettlement(service.db, draft.id);
  assert.deepEqual([state, approvedBy], ['APPROVED', 'tester, tester']);
});
