import assert from 'node:assert/strict';
import { test } from 'node:test';
import { closeDays, keepBooks } from '../../src/books/close.ts';
import { correctTopUp, getTopUp } from '../../src/books/floats.ts';
import { Pieces } from '../../src/books/pieces.ts';
import { passMark, seal, sealDue } from '../../src/books/seal.ts';
import { sweepExpired } from '../../src/books/sweep.ts';
import { createService, type Operator } from '../../src/context.ts';
import { idAt, newId } from '../../src/ledger/id.ts';
import { getAccount, post } from '../../src/ledger/journal.ts';
import { topUp } from '../../src/merchants/floats.ts';
import { transactions } from '../../src/transactions/transactions.ts';
import { activate } from '../../src/vouchers/activate.ts';
import { showVoucher } from '../../src/vouchers/show.ts';
import { type Ledger, openLedger, product, sell } from '../support/books.ts';
import { close } from '../support/settlements.ts';

/** Processes whose clocks differ by less than the bounds of a booking (sql/005-rules.sql). */

const BEHIND_MS = 100_000;

/** The operator at a process whose clock is behind. */
function behind({ operator }: Ledger): Operator {
  const { service } = operator;
  const clock = () => new Date(service.clock().getTime() - BEHIND_MS);
  return { ...operator, service: createService({ ...service, clock }) };
}

test('a voucher that is activated after its batch was swept, by a clock that is behind, is swept', async (t) => {
  const ledger = await openLedger(t, '2026-03-02T09:00:00Z');
  const { operator } = ledger;
  const shop = await ledger.merchant();
  const productCode = await product(operator, 'SHORT', 'operator');
  const [card] = await sell(shop, 1, undefined, { productCode });
  assert.ok(card);
  await ledger.at('2026-03-05T00:00:30Z');
  assert.equal(await sweepExpired(operator.service), 0);
  const { service } = behind(ledger);
  await activate({ ...shop, service, now: service.clock() }, { voucher: card });
  await ledger.at('2026-03-05T00:20:00Z');
  assert.deepEqual(await close(ledger), ['2026-03-02', '2026-03-03', '2026-03-04']);
  assert.equal((await showVoucher(service, card.serial)).balance, 0n);
});

test('a top-up is corrected once, also by a process whose clock is behind', async (t) => {
  const ledger = await openLedger(t, '2026-03-02T09:00:00Z');
  const { operator } = ledger;
  const { service } = operator;
  const { id: merchantId } = (await ledger.merchant()).merchant;
  const wanted = { merchantId, currency: 'USD', amountMinor: 700n };
  const { transactionId: originalId } = await topUp(operator, wanted);
  const wrong = await getTopUp(operator, originalId);
  const now = behind(ledger).service.clock();
  // One process never makes an id that is less than its last one.
  const id = idAt(newId(now), now);
  const accounts = {
    debit: await getAccount(service.db, merchantId, 'USD', 'FLOAT'),
    credit: await getAccount(service.db, 0, 'USD', 'FUNDING'),
  };
  const movement = { kind: 'FLOAT_CORRECTION', id, ...accounts, amountMinor: 700n, merchantId, originalId };
  await post(service.db, { ...movement, now });
  const again = correctTopUp(operator, { topUp: wrong, amountMinor: 700n, reference: 'two' });
  await assert.rejects(again, { code: '58' });
  const shown = await transactions.show.run(operator, { transactionId: originalId });
  assert.equal(shown.correctedBy, id);
});

test('slices are sealed up to the first expiry that is not swept, so it is dated at its expiry', async (t) => {
  const ledger = await openLedger(t, '2026-03-02T09:00:00Z');
  const { service } = ledger.started;
  const shop = await ledger.merchant();
  const expiryDate = new Date('2026-03-03T10:10:00Z');
  await sell(shop, 2, 50, { expiryDate });
  await ledger.at('2026-03-03T10:09:00Z');
  await ledger.close();
  // A closer whose sweep came before the expiry, or left the voucher to a till.
  await ledger.at('2026-03-03T14:00:00Z');
  await passMark(service);
  await sealDue(service, new Pieces(service.db));
  assert.deepEqual(await ledger.sql('select sealed_until from scrip.books'), [
    { sealed_until: new Date('2026-03-03T09:45:00Z') },
  ]);
  await assert.rejects(service.db.query(seal(new Date('2026-03-03T11:00:00Z'))), /cannot be sealed yet/);
  // Also after a night without the service, and by two closers at once.
  await ledger.at('2026-03-04T09:00:00Z');
  await Promise.all([keepBooks(service, [], () => false), closeDays(ledger.operator)]);
  await ledger.close();
  const expired = await ledger.sql<{ at: Date }>(
    "select occurred_at as at from scrip.journal where kind = 'EXPIRY'",
  );
  assert.deepEqual(
    expired.map(({ at }) => at),
    [expiryDate, expiryDate],
  );
});
