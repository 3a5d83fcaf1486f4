import assert from 'node:assert/strict';
import { test } from 'node:test';
import { strFromU8, unzipSync } from 'fflate';
import type { Cell } from '../../src/csv.ts';
import { writeXlsx } from '../../src/xlsx.ts';

/** Workbooks: what a cell holds, and that no text can be a formula, or break the file. */

type Read = { readonly style: number; readonly type: string; readonly value: string };

async function read(rows: readonly (readonly Cell[])[]) {
  const files = unzipSync(Buffer.concat(await Array.fromAsync(writeXlsx(rows))));
  const text = (name: string) => strFromU8(files[name] ?? new Uint8Array());
  const sheet = text('xl/worksheets/sheet1.xml');
  const cells = new Map<string, Read>();
  const unescaped = (value: string) =>
    value.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&');
  for (const [, place = '', attributes = '', content = ''] of sheet.matchAll(
    /<c r="(\w+)"([^>]*)>(.*?)<\/c>/gs,
  ))
    cells.set(place, {
      style: Number(/ s="(\d+)"/.exec(attributes)?.[1] ?? 0),
      type: / t="(\w+)"/.exec(attributes)?.[1] ?? 'n',
      value: unescaped(content.replace(/<[^>]+>/g, '')),
    });
  const styles = [...text('xl/styles.xml').matchAll(/formatCode="([^"]+)"/g)].map(([, code]) => code);
  return { sheet, cells, formatOf: (place: string) => styles[(cells.get(place)?.style ?? 0) - 2] };
}

test('a workbook has amounts, days and times as values, and ids as texts', async () => {
  const time = '2026-01-31T10:20:30.500Z';
  const { sheet, cells, formatOf } = await read([
    ['amount', 'yen', 'rate', 'day', 'time', 'serial', 'count', 'nothing'],
    [
      { amount: '-12.50' },
      { amount: '1200' },
      { number: '12.3456' },
      { date: '2026-01-31' },
      { date: time },
      '0012',
      7,
      null,
    ],
  ]);
  const shownAt = (place: string) => `${cells.get(place)?.type} ${cells.get(place)?.value}`;
  assert.deepEqual(['A2', 'B2', 'C2'].map(shownAt), ['n -12.50', 'n 1200', 'n 12.3456']);
  assert.deepEqual(['A2', 'B2', 'C2'].map(formatOf), ['0.00', '0', '0.0000']);
  assert.deepEqual([shownAt('D2'), formatOf('D2')], ['n 46053', 'yyyy-mm-dd']);
  const days = Number(cells.get('E2')?.value) - 25_569;
  assert.deepEqual(
    [new Date(Math.round(days * 86_400_000)).toISOString(), formatOf('E2')],
    [time, 'yyyy-mm-dd hh:mm:ss'],
  );
  assert.deepEqual(['F2', 'G2'].map(shownAt), ['inlineStr 0012', 'n 7']);
  assert.equal(cells.has('H2'), false);
  assert.match(sheet, /<pane ySplit="1" [^>]*state="frozen"\/>/);
});

test('more rows than a sheet holds go on in another one, under the same head', async () => {
  const rows = [['name'], ...['a', 'b', 'c', 'd', 'e'].map((each) => [each])];
  const files = unzipSync(Buffer.concat(await Array.fromAsync(writeXlsx(rows, 3))));
  const textsIn = (name: string) =>
    [...strFromU8(files[name] ?? new Uint8Array()).matchAll(/r="(A\d)".*?<t [^>]*>(\w+)</g)].map(
      ([, place, text]) => `${place} ${text}`,
    );
  const sheets = Object.keys(files).filter((name) => name.startsWith('xl/worksheets/'));
  assert.deepEqual(sheets.map(textsIn), [
    ['A1 name', 'A2 a', 'A3 b'],
    ['A1 name', 'A2 c', 'A3 d'],
    ['A1 name', 'A2 e'],
  ]);
  const workbook = strFromU8(files['xl/workbook.xml'] ?? new Uint8Array());
  assert.deepEqual(workbook.match(/(?<=name=")[^"]+/g), ['Scrip', 'Scrip 2', 'Scrip 3']);
  // Each sheet is declared, and leads to its file.
  const types = strFromU8(files['[Content_Types].xml'] ?? new Uint8Array());
  const targets = strFromU8(files['xl/_rels/workbook.xml.rels'] ?? new Uint8Array());
  for (const name of sheets) {
    assert.ok(types.includes(`PartName="/${name}"`), name);
    assert.ok(targets.includes(`Target="${name.replace('xl/', '')}"`), name);
  }
});

test('a number with more digits than a spreadsheet keeps, and a day that it cannot show, are texts', async () => {
  const { cells } = await read([
    ['a'],
    [{ amount: '99999999999999.99' }, { date: '0001-01-01' }, { date: 'never' }, { number: '1e999' }],
  ]);
  for (const place of ['A2', 'B2', 'C2', 'D2']) assert.equal(cells.get(place)?.type, 'inlineStr', place);
});

test('no text is a formula, or breaks the file', async () => {
  const hostile = {
    "=cmd|'/C calc'!A0": "=cmd|'/C calc'!A0",
    '</t></is></c><c r="Z1"><f>1+1</f></c>&amp;]]>': '</t></is></c><c r="Z1"><f>1+1</f></c>&amp;]]>',
    'a\u0000\u001b\rb\n\tc': 'a_x0000__x001B__x000D_b\n\tc',
    _x000D_: '_x005F_x000D_',
    '\ufffe\uffff': '_xFFFE__xFFFF_',
    '\ud800lone\udc00': '\ufffdlone\ufffd',
  };
  const { sheet, cells } = await read([['text', '=head'], ...Object.keys(hostile).map((each) => [each])]);
  assert.equal(cells.get('B1')?.value, '=head');
  assert.deepEqual(
    Object.keys(hostile).map((_, at) => cells.get(`A${at + 2}`)?.value),
    Object.values(hostile),
  );
  assert.doesNotMatch(sheet, /<f>/);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: XML forbids them
  assert.doesNotMatch(sheet, /[\x00-\x08\x0b-\x1f\ufffe\uffff]/);
  const long = await read([['text'], ['x'.repeat(40_000)]]);
  const kept = long.cells.get('A2')?.value ?? '';
  assert.deepEqual([kept.length, kept.at(-1)], [32_767, '…']);
});

test('rows are written while they are read', async () => {
  let made = 0;
  async function* rows(): AsyncGenerator<Cell[]> {
    yield ['id', 'text'];
    for (; made < 20_000; made++) yield [made, `some text ${made * 7919}`];
  }
  const pieces = writeXlsx(rows());
  let bytes = 0;
  // The first pieces are the other files, and what is compressed of the first rows.
  while (bytes < 10_000) bytes += (await pieces.next()).value?.length ?? 0;
  assert.ok(made < 10_000, `${made} rows were read before 10 kB were written`);
  await pieces.return(undefined);
});
