import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setBankAccount } from '../../src/bank/accounts.ts';
import { saveMapping } from '../../src/bank/csv.ts';
import { importBank } from '../../src/bank/import.ts';
import { matchBank } from '../../src/bank/match.ts';
import { approve } from '../../src/settlement/approve.ts';
import { draftSettlements } from '../../src/settlement/draft.ts';
import { pay } from '../../src/settlement/pay.ts';
import { getSettlement } from '../../src/settlement/settlements.ts';
import { MAPPING } from '../support/bank.ts';
import { openScene, settledDay } from '../support/settlements.ts';

test('a payment at the bank proposes the payout of the settlement that it names, and books nothing', async (t) => {
  const scene = await openScene(t);
  const { operator, started } = scene.ledger;
  await settledDay(scene);
  const [draft] = await draftSettlements(operator, { merchantId: scene.shop.merchant.id });
  assert.ok(draft);
  const { settlement } = await approve(operator, draft.id);
  await setBankAccount(operator, { name: 'House', currency: 'USD' });
  await saveMapping(operator, 'house', { ...MAPPING, entryReference: 'Ref' });
  const rows = [
    `02.03.2026;Settlement ${settlement.number};-97,10;B 1`,
    `02.03.2026;Settlement 1${settlement.number};-97,10;B 2`,
    `02.03.2026;Settlement ${settlement.number};-97,11;B 3`,
  ];
  const bytes = Buffer.from(`Buchungstag;Zweck;Betrag;Ref\n${rows.join('\n')}\n`);
  await importBank(operator, { account: 'House', bytes, format: 'csv', mapping: 'house' }, false);
  const matched = async () => {
    const { exact, suggested, payouts } = await matchBank(operator, true);
    return [
      exact.map(({ entry }) => entry.reference),
      suggested.map(({ entry }) => entry.reference),
      payouts.map(({ entry, settlement: { id } }) => [entry.reference, id]),
    ];
  };
  assert.deepEqual(await matched(), [[], [], [['B 1', draft.id]]]);
  assert.equal((await getSettlement(started.service.db, draft.id)).state, 'APPROVED');
  const paid = { settlementId: draft.id, reference: 'p 1', bankReference: 'B 1', valueDate: '2026-03-02' };
  await pay(operator, paid);
  assert.deepEqual(await matched(), [['B 1'], [], []]);
});
