import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { before, test } from 'node:test';
import { leafOf, sha256 } from '@scrip/verifier';
import type { ExportWanted } from '../../src/books/export.ts';
import { leafHash, rootOf } from '../../src/books/merkle.ts';
import { verifyBooks } from '../../src/books/verify.ts';
import { type Ledger, openLedger, sell, spend } from '../support/books.ts';
import { PROGRAMS, run, verified } from '../support/proof-programs.ts';
import { exportedText } from '../support/reports.ts';
import { ofFile } from '../support/scope.ts';

/** A stranger verifies closed days without Scrip, by either of two programs. */

const t = ofFile();
let ledger: Ledger;
let cafeId: number;
let transactionId: string;

before(async () => {
  ledger = await openLedger(t, '2026-03-02T09:00:00Z');
  const shop = await ledger.merchant();
  const cafe = await ledger.merchant();
  cafeId = cafe.merchant.id;
  const [card] = await sell(shop, 1, 25);
  await sell(cafe, 5, 10);
  await spend(shop, card, 10, 'ü | \\ " \u2028');
  await ledger.at('2026-03-02T10:20:00Z');
  ({ transactionId } = await spend(shop, card, 1, 'one'));
  await ledger.at('2026-03-04T09:00:00Z');
  await spend(shop, card, 5, 'later');
  await ledger.at('2026-03-05T00:30:00Z');
  await ledger.close();
});

const proof = (wanted: Partial<ExportWanted> = {}) =>
  exportedText(ledger.started.service, { format: 'proof', from: '2026-03-02', to: '2026-03-05', ...wanted });

test('the example of the page has the hashes that it states', async () => {
  const page = await readFile(new URL('../../docs/reference/proof.md', import.meta.url), 'utf8');
  const [example = '', some = ''] = Array.from(
    page.matchAll(/^```text\n([\s\S]*?)^```/gm),
    ([, text]) => text,
  );
  const [, row = ''] = /^row (.*)$/m.exec(example) ?? [];
  assert.equal(/first row is\s+`(\w+)`/.exec(page)?.[1], Buffer.from(leafOf(row)).toString('hex'));
  const [, sentence] = /programs print\s+`([^`]+)`/.exec(page) ?? [];
  assert.equal(sentence?.replace(/\s+/g, ' '), verified(example));
  assert.equal(
    sentence?.replace(/4 rows;\s/, '1 row shown, others hidden; ').replace(/\s+/g, ' '),
    verified(some),
  );
});

test('a Merkle tree is that of RFC 6962, in the database, the service and the verifier', async () => {
  const leaves = ['', ...'abcdefghijklmno'].map(leafHash);
  for (let size = 0; size <= leaves.length; size++) {
    const some = leaves.slice(0, size);
    const [found] = await ledger.sql<{ root: Buffer }>(
      `select scrip.merkle_root('\\x${Buffer.concat(some).toString('hex')}') as root`,
    );
    assert.deepEqual([size, rootOf(some)], [size, treeHash(some)]);
    assert.deepEqual([size, found?.root], [size, treeHash(some)]);
  }
});

/** MTH of RFC 6962, as it is defined there. */
function treeHash(leaves: readonly Buffer[]): Buffer {
  const [only] = leaves;
  if (!only) return hash('sha256', Buffer.alloc(0), 'buffer');
  if (leaves.length === 1) return only;
  let half = 1;
  while (half * 2 < leaves.length) half *= 2;
  const sides = [treeHash(leaves.slice(0, half)), treeHash(leaves.slice(half))];
  return hash('sha256', Buffer.concat([Buffer.from([1]), ...sides]), 'buffer');
}

test('the SHA-256 of the verifier is that of Node', () => {
  for (let length = 0; length < 200; length++) {
    const bytes = Buffer.alloc(length, `${length} ü`);
    assert.equal(Buffer.from(sha256(bytes)).toString('hex'), hash('sha256', bytes));
  }
});

test('both programs verify all rows, those of a merchant, and one', async () => {
  const all = await proof();
  const merchant = await proof({ merchantId: cafeId });
  const one = await proof({ transactionId });
  assert.deepEqual([all, merchant, one].map(countRows), [13, 7, 1]);
  assert.ok(one.includes(`\nrow ${transactionId}|`));
  for (const some of [merchant, one])
    assert.doesNotMatch(some, /^(totals|account) /m, 'it shows all balances');
  for (const program of Object.values(PROGRAMS))
    for (const [text, rows] of [
      [all, '13 rows;'],
      [merchant, '7 rows shown, others hidden;'],
      [one, '1 row shown, others hidden;'],
    ] as const) {
      const [status, sentence] = await run(program, text);
      assert.equal(status, 0, sentence);
      assert.match(sentence, new RegExp(`^verified: 3 closed days up to 2026-03-04, ${rows} closing hash`));
      assert.equal(sentence, verified(text));
    }
  const [day] = await ledger.sql<{ hash: string }>(
    `select encode(hash, 'hex') as hash from scrip.book_closings order by day desc limit 1`,
  );
  assert.ok(day && verified(all).endsWith(day.hash));
});

const countRows = (text: string) => text.match(/^row /gm)?.length;

test('an export for a merchant has the rows that move its accounts without naming it', async (scope) => {
  const own = await openLedger(scope, '2026-03-02T09:00:00Z');
  const shops = [await own.merchant(), await own.merchant()];
  for (const shop of shops) await sell(shop, 1, 25);
  await own.sql(`update scrip.journal set merchant_id = null where kind = 'RESERVATION'`);
  await own.at('2026-03-03T00:30:00Z');
  await own.close();
  for (const { merchant } of shops) {
    const wanted = { from: '2026-03-02', to: '2026-03-03', merchantId: merchant.id } as const;
    const shown = await exportedText(own.started.service, { format: 'proof', ...wanted });
    assert.equal(shown.match(/^row [^|]*[|]RESERVATION[|].*$/gm)?.length, 1);
    assert.match(verified(shown), /^verified: 1 closed day up to 2026-03-02, \d+ rows shown, others hidden;/);
    const statement = await exportedText(own.started.service, { format: 'camt053', ...wanted });
    assert.equal(statement.match(/RESERVATION/g)?.length, 1);
  }
});

test('a line that is changed, removed, doubled or cut off is found by both programs', async () => {
  const text = await proof();
  const whole = verified(text);
  const lines = text.trimEnd().split('\n');
  for (const [at, line] of lines.entries()) {
    const changed = line.replace(/\d(?=\D*$)/, (digit) => String((Number(digit) + 1) % 10));
    const forged = { changed: lines.with(at, changed), removed: lines.toSpliced(at, 1) };
    const others = { doubled: lines.toSpliced(at, 0, line), cut: [...lines.slice(0, at), line.slice(0, -9)] };
    for (const [what, each] of Object.entries({ ...forged, ...others })) {
      const sentence = verified(`${each.join('\n')}${what === 'cut' ? '' : '\n'}`);
      if (what === 'cut') assert.match(sentence, /^refused: the file is (cut off|no proof)/, line);
      else if (what === 'changed' && line === lines.at(-1)) assert.notEqual(sentence, whole);
      else assert.match(sentence, /^refused: /, `${what}: ${line}`);
    }
  }
  const dropped = `${lines.toSpliced(lines.length - 3, 1).join('\n')}\n`;
  for (const program of Object.values(PROGRAMS)) {
    const [status, sentence] = await run(program, dropped);
    assert.equal(status, 1);
    assert.match(sentence, /^refused: slice 2026-03-04T09:00:00.000Z: 1 row closed, but 0 rows are in/);
  }
});

test('a proof ends before the day that is named last, and has no transaction of other days', async () => {
  assert.match(verified(await proof({ to: '2026-03-04' })), /^verified: 2 closed days up to 2026-03-03, /);
  const wanted = { transactionId, from: '2026-03-03' };
  await assert.rejects(proof(wanted), {
    code: 'not-found',
    message: /is not of the days from 2026-03-03 to/,
  });
});

test('an open day has no proof, and a changed row is found in the next one', async () => {
  await assert.rejects(proof({ to: '2026-03-06' }), /2026-03-05 is not closed/);
  await ledger.sql(`update scrip.journal set amount_minor = amount_minor + 1 where reference = 'later'`);
  assert.match(verified(await proof()), /^refused: slice 2026-03-04T09:00:00.000Z: a row is not the one/);
  assert.equal((await verifyBooks(ledger.started.service)).ok, false);
});
