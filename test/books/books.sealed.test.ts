import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { hash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { before, type TestContext, test } from 'node:test';
import { VERSION } from '../../src/books/seal.ts';
import { verifyBooks } from '../../src/books/verify.ts';
import { openLedger, sell, spend } from '../support/books.ts';
import { exportedText } from '../support/reports.ts';

/** A stranger verifies closed days with an export and the page docs/reference/seals.md only. */

let page: string;

before(async () => {
  page = await readFile(new URL('../../docs/reference/seals.md', import.meta.url), 'utf8');
});

function block(language: string): string {
  const [, text] = new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\``, 'm').exec(page) ?? [];
  return text ?? assert.fail(`the page has no ${language}`);
}

/** Runs the program of the page. @returns what it prints, or what it finds */
function verified(text: string, ...args: readonly string[]): Promise<string> {
  return new Promise((resolve) => {
    const program = ['--input-type=module', '--eval', block('js'), 'verify.mjs'];
    const child = execFile(process.execPath, [...program, ...args], (_error, out, found) =>
      resolve((out || found).trim()),
    );
    child.stdin?.on('error', () => {}).end(text);
  });
}

test('the example of the page has the hashes that it states', async () => {
  const example = block('json');
  const [first = '', ...others] = example.trim().split('\n');
  const { closing } = JSON.parse(others.at(-1) ?? '') as { closing: string };
  assert.equal((JSON.parse(closing) as unknown[])[10], VERSION, 'the page explains another version');
  const { row } = JSON.parse(first) as { row: string };
  assert.equal(/first row is `(\w+)`/.exec(page)?.[1], hash('sha256', row));
  assert.equal(/program prints `(\w+)`/.exec(page)?.[1], await verified(example));
});

async function twoDays(t: TestContext) {
  const ledger = await openLedger(t, '2026-03-02T09:00:00Z');
  const shop = await ledger.merchant();
  const [card] = await sell(shop, 1, 25);
  assert.ok(card);
  await spend(shop, card, 10, 'ü | \\ "');
  await ledger.at('2026-03-04T09:00:00Z');
  await spend(shop, card, 5, 'later');
  await ledger.at('2026-03-05T00:30:00Z');
  await ledger.close();
  const exported = (from: string) =>
    exportedText(ledger.started.service, { format: 'sealed', from, to: '2026-03-05' });
  const hashes = await ledger.sql<{ hash: string }>(
    `select encode(hash, 'hex') as hash from scrip.book_closings order by day`,
  );
  return { ledger, exported, hashes: hashes.map((each) => each.hash) };
}

test('the program of the page verifies an export, and finds what was changed in it', async (t) => {
  const { ledger, exported, hashes } = await twoDays(t);
  const text = await exported('2026-03-02');
  assert.equal(await verified(text), hashes.at(-1));
  assert.equal(await verified(await exported('2026-03-04'), hashes[1] ?? ''), hashes.at(-1));
  assert.match(await verified(await exported('2026-03-04')), /2026-03-04 is not what was sealed/);
  const lines = text.trim().split('\n');
  for (const [index, line] of lines.entries()) {
    const changed = lines.with(
      index,
      line.replace(/\d(?=\D*$)/, (digit) => String((Number(digit) + 1) % 10)),
    );
    assert.match(await verified(changed.join('\n')), /is not what was sealed/, line);
    assert.match(await verified(lines.toSpliced(index, 1).join('\n')), /is not what was sealed/, line);
  }
  await ledger.sql(`update scrip.journal set amount_minor = amount_minor + 1 where reference = 'later'`);
  assert.match(await verified(await exported('2026-03-02')), /2026-03-04T09:00:00.000Z is not what/);
  assert.equal((await verifyBooks(ledger.started.service)).ok, false);
});
