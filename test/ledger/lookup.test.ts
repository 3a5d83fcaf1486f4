import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { DIALECTS } from '../support/dialects.ts';
import { Till, tillsOfOneService } from '../support/till.ts';

const openTill = tillsOfOneService();

for (const dialect of DIALECTS) {
  describe(`a lookup by ${dialect.name}`, () => {
    test('does not find batches, transactions of other merchants, or unknown references', async () => {
      const till = await openTill();
      const other = await Till.another(till.testService);
      const { data } = await till.done(dialect.generate('batch', 1, 25));
      await till.done(dialect.redeem(data.vouchers[0], 10, 'sale'));
      await till.refused(dialect, dialect.notFound, dialect.lookup('batch'));
      await till.refused(dialect, dialect.notFound, dialect.lookup('nobody'));
      await other.refused(dialect, dialect.notFound, dialect.lookup('sale'));
    });

    test('returns a reference exactly as it was sent, with any characters', async () => {
      const till = await openTill();
      const voucher = await till.voucher(25);
      for (const reference of [
        'a/b c?d#e%2F&f=g;h',
        '+',
        'é'.normalize('NFD'),
        '😀'.repeat(90),
        'schön 你好 🎁',
        "'; drop table x; --",
        'x'.repeat(100),
        '..',
        '{a,"b"}',
        'null',
      ]) {
        await till.done(dialect.redeem(voucher, 1, reference));
        // Two dots in a URL mean the folder above, and do not arrive as a reference.
        if (reference === '..') continue;
        assert.equal((await till.done(dialect.lookup(reference))).data.reference, reference);
      }
    });
  });
}
