import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Verifier } from '@scrip/verifier';
import { setBankAccount } from '../../src/bank/accounts.ts';
import { saveMapping } from '../../src/bank/csv.ts';
import { bankEntries, bankMovements } from '../../src/bank/entries.ts';
import { importBank } from '../../src/bank/import.ts';
import { matchBank } from '../../src/bank/match.ts';
import { leafHash, rootOf } from '../../src/books/merkle.ts';
import type { Operator } from '../../src/context.ts';
import type { Caller } from '../../src/operation.ts';
import { approve } from '../../src/settlement/approve.ts';
import { pay } from '../../src/settlement/pay.ts';
import { settlementProof } from '../../src/settlement/proof.ts';
import type { Settlement } from '../../src/settlement/settlements.ts';
import { MAPPING } from '../support/bank.ts';
import { sell, spend } from '../support/books.ts';
import { make, rowsOf } from '../support/reports.ts';
import { ofFile } from '../support/scope.ts';
import { close, draftedDay, draftOf, openScene, type Scene, terms } from '../support/settlements.ts';

/** The proof of a settlement: from the rows of its merchant up to the entries of the bank. */

const file = ofFile();

type Payment = Record<string, unknown>;

/** Books the payout of a settlement of 97.10, which the statement of the bank shows. */
async function payAtBank(operator: Operator, { id, number }: Settlement): Promise<void> {
  await setBankAccount(operator, { name: 'House', currency: 'USD' });
  await saveMapping(operator, 'house', { ...MAPPING, entryReference: 'Ref' });
  const lines = [`02.03.2026;Settlement ${number};-97,10;B 1`, '02.03.2026;Interest;1,00;B 9'];
  const bytes = Buffer.from(`Buchungstag;Zweck;Betrag;Ref\n${lines.join('\n')}\n`);
  await importBank(operator, { account: 'House', bytes, format: 'csv', mapping: 'house' }, false);
  const paid = { settlementId: id, reference: 'p 1', bankReference: 'B 1', valueDate: '2026-03-02' };
  await pay(operator, paid);
  await matchBank(operator, false);
}

/** Books the payout of the settlement of the issuer. Returns its id. */
async function payOther(scene: Scene): Promise<string> {
  const { operator } = scene.ledger;
  const { id } = await draftOf({ ...scene, shop: scene.issuer });
  await approve(operator, id);
  await pay(operator, { settlementId: id, reference: 'p 2', bankReference: 'B 2', valueDate: '2026-03-02' });
  return id;
}

/** Checks that entries of the bank, movements and R13 name a settlement and its root. */
async function isNamedAtBank(operator: Operator, { number, root }: Settlement): Promise<void> {
  const caller = operator as Caller;
  const named = { settlement: number, root };
  const entries = (await bankEntries.run(caller, {})).items;
  assert.partialDeepStrictEqual(
    entries.flatMap((entry) => entry.movements),
    [named],
  );
  const movements = (await bankMovements.run(caller, {})).items;
  assert.partialDeepStrictEqual(
    movements.find(({ bankReference }) => bankReference === 'B 1'),
    named,
  );
  const report = await make(operator.service, 'R13', { from: '2026-03-01', to: '2026-03-03' });
  assert.partialDeepStrictEqual(
    rowsOf(report, 'entries').find(({ settlement }) => settlement === number),
    named,
  );
}

/** Returns how many closed days a proof hides before its own, and after them. */
function hiddenAround(proof: string): string[][] {
  const { before, after } = JSON.parse(proof).checkpoint;
  return [before, after].map((lines: string[]) => lines.map((line) => line.replace(/ \S+$/, '')));
}

test('a proof leads from the rows of a merchant to the bank, and shows nothing of others', async () => {
  const scene = await openScene(file);
  const { ledger, shop, issuer } = scene;
  const { operator } = ledger;
  const caller = operator as Caller;
  const [card] = await sell(issuer, 1, 20);
  assert.ok(card);
  const prove = async (id: string) => {
    const { name, content } = await settlementProof.run(caller, { id });
    const pieces = await Array.fromAsync(content as AsyncIterable<string>);
    return { name, text: pieces.join('') };
  };
  // In the slice in which the shop redeems, too.
  await ledger.at('2026-03-01T10:00:00Z');
  await spend(issuer, card, 5, 'not the shop 1');
  await terms(operator, issuer.merchant.id);
  const draft = await draftedDay(scene);
  await assert.rejects(prove(draft.id), /is a draft/);
  const { settlement } = await approve(operator, draft.id);
  assert.equal(settlement.root, draft.root);

  const { name, text } = await prove(draft.id);
  assert.equal(name, `settlement-${shop.merchant.id}-2026-0001.json`);
  assert.doesNotMatch(text, /not the shop/);
  const proof = JSON.parse(text);
  const verifier = new Verifier();
  for (const line of proof.proof) verifier.line(line);
  assert.match(verifier.end(), /^verified: 1 closed day up to 2026-03-01, 4 rows shown/);
  const rows: string[] = proof.proof.flatMap((line: string) => (/^row /.test(line) ? line.slice(4) : []));
  assert.equal(rootOf(rows.map(leafHash)).toString('hex'), settlement.root);
  assert.deepEqual(
    rows.map((row) => row.split('|')).map(([, kind, , , amount]) => [kind, amount]),
    [
      ['REDEMPTION', '6000'],
      ['REDEMPTION', '4010'],
      ['FEE', '250'],
      ['FEE_VAT', '50'],
    ],
  );
  assert.deepEqual([proof.settlement.payable, proof.settlement.root], ['97.10', settlement.root]);
  assert.deepEqual(proof.payments, []);

  await payAtBank(operator, settlement);
  const other = await payOther(scene);
  const { payments: ofOther } = JSON.parse((await prove(other)).text);
  assert.deepEqual(
    ofOther.map(({ bankReference, entries }: Payment) => [bankReference, entries]),
    [['B 2', []]],
  );
  const { payments } = JSON.parse((await prove(draft.id)).text);
  assert.deepEqual(
    payments.map(({ kind, amount, entries }: Payment) => [kind, amount, entries]),
    [['PAYOUT', '97.10', [{ reference: 'B 1', bookedOn: '2026-03-02', amount: '-97.10' }]]],
  );
  await isNamedAtBank(operator, settlement);

  // A later checkpoint contains the day too, and the days around a settlement as hashes.
  await ledger.at('2026-03-04T00:20:00Z');
  assert.deepEqual(await close(ledger), ['2026-03-02', '2026-03-03']);
  await spend(shop, card, 5, 'sale 3');
  await ledger.at('2026-03-06T00:20:00Z');
  assert.deepEqual(await close(ledger), ['2026-03-04', '2026-03-05']);
  assert.deepEqual(hiddenAround((await prove(draft.id)).text), [[], ['- 4']]);
  const { id } = await draftOf(scene);
  await approve(operator, id);
  await ledger.at('2026-03-07T00:20:00Z');
  assert.deepEqual(await close(ledger), ['2026-03-06']);
  assert.deepEqual(hiddenAround((await prove(id)).text), [['- 1'], ['- 1']]);
});
