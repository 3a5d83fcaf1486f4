import assert from 'node:assert/strict';
import { test } from 'node:test';
import { writeCsv } from '@scrip/print';
import { toCsv } from '../../console/src/ui/csv-text.ts';
import { csvText } from '../../src/csv.ts';

/** Texts that merchants choose, in files that others open in a spreadsheet. */

const SIGNS = ['=', '+', '-', '@', '\uff1d', '\uff0b', '\uff0d', '\uff20'];
/** What begins a cell in some spreadsheet: its separator depends on its country. */
const ENDS = ['', 'x,', 'x;', 'x\t', 'x,"', 'x;""', '\t', '\r', 'x\r\n', ';', '\t\t', 'x,;'];
const TEXTS = ENDS.flatMap((end) => SIGNS.map((sign) => `${end}${sign}1+1`));

const BATCH = { product: 'Voucher', reference: 'r' };

async function printed(merchant: string): Promise<string> {
  const voucher = { serialNumber: 1, code: 'C', pin: 'P', value: '1', currency: 'USD', lastDay: '' };
  const pages = (async function* () {
    yield [{ ...voucher, expiresAt: new Date(0) }];
  })();
  const pieces = await Array.fromAsync(writeCsv({ ...BATCH, merchant } as never, pages as never));
  return pieces.slice(1).join('');
}

test('no text of a file runs as a formula, whichever separator the spreadsheet has', async () => {
  for (const text of TEXTS)
    for (const csv of [
      csvText([['first', text]], 'standard'),
      csvText([['first', text]], 'european'),
      toCsv(['name', 'text'], [{ name: 'first', text }])
        .split('\r\n')
        .slice(1)
        .join('\r\n'),
      toCsv(['name', 'text'], [{ name: 'first', text: { text } }])
        .split('\r\n')
        .slice(1)
        .join('\r\n'),
      await printed(text),
    ])
      assert.doesNotMatch(csv, /(^|[,;\t\r\n])"*[=+\-@\uff1d\uff0b\uff0d\uff20]/, JSON.stringify(text));
});

test('amounts and plain texts stay as they are', () => {
  const plain = ['plain', 'a-b', 'a@b.example', '1 + 1 = 2', "O'Hara", 'a, b'];
  assert.equal(
    csvText([[...plain, { amount: '-5.00' }, -3]], 'standard'),
    `${plain.slice(0, -1).join(',')},"a, b",-5.00,-3\r\n`,
  );
  assert.equal(toCsv(['n'], [{ n: -5 }]), 'n\r\n-5\r\n');
});
