import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtemp, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { FONTS } from '../../print/names.ts';
import { barsOfSerial } from '../../print/symbols.ts';
import { listAudit } from '../../src/audit/entries.ts';
import { cancelBatch } from '../../src/batches/cancel.ts';
import { exportBatch, listExports } from '../../src/batches/export.ts';
import { generate } from '../../src/batches/generate.ts';
import type { Context } from '../../src/context.ts';
import { redeem } from '../../src/redemptions/redeem.ts';
import { replaceVoucher } from '../../src/vouchers/operate.ts';
import { folderOf } from '../support/folder.ts';
import { asOperator } from '../support/harness.ts';
import { type Made, Operator, vouchersOf } from '../support/operator.ts';
import { readSheet } from '../support/print.ts';
import { ofFile } from '../support/scope.ts';
import { typed } from '../support/scrip.ts';

const operator = Operator.ofTests();
const folder = folderOf(ofFile());
const EXPIRY = new Date('2099-12-31T23:59:59.999Z');

async function merchant(name: string): Promise<Context> {
  return operator.enter(await operator.json`merchant create --name ${name} --float 10000`);
}

async function make(context: Context, reference: string, quantity: number, value: number | undefined = 25) {
  const { batch } = await generate(context, { reference, quantity, value, expiryDate: EXPIRY });
  return { batch, vouchers: batch.status === 'COMPLETED' ? await vouchersOf(context, reference) : [] };
}

const grouped = (code: string) => `${code.slice(0, 4)} ${code.slice(4, 8)} ${code.slice(8)}`;
const HEADER =
  '"serialNumber","code","pin","voucherCode","value","currency","expiryDate","lastDay","merchant","product","reference"';

function line({ serialNumber, code, pin }: Made, value: string, rest: string): string {
  return `"${serialNumber}","${code}","${pin}","${code}${pin}","${value}","USD","2099-12-31T23:59:59.999Z","2099-12-31",${rest}`;
}

describe('a batch as CSV', () => {
  test('holds every voucher, in text cells without formulas', async () => {
    const context = await merchant(`=HYPERLINK("http://x")`);
    const reference = '+1,2 "spring"';
    const { batch, vouchers } = await make(context, reference, 10);
    const rest = `"'=HYPERLINK(""http://x"")","Voucher","'+1,2 ""spring"""`;
    const expected = [HEADER, ...vouchers.map((each) => line(each, '25.00', rest)), ''].join('\r\n');
    const { status, out, err } = await operator.run`batch export ${batch.transactionId} --format csv`;
    assert.deepEqual([status, err], [0, '']);
    assert.equal(out, expected);
  });

  test('shows the current balance of each voucher, and leaves out replaced ones', async () => {
    const context = await merchant('Worth');
    const { batch, vouchers } = await make(context, 'worth', 3);
    const [spent, lost, whole] = vouchers as [Made, Made, Made];
    await redeem(context, { code: spent.code, pin: spent.pin, amount: 5 });
    await replaceVoucher(asOperator(operator.testService.service), lost.serialNumber);
    const fresh = (await vouchersOf(context, 'worth')).at(-1) as Made;
    const rest = '"Worth","Voucher","worth"';
    const { out } = await operator.run`batch export ${batch.transactionId} --format csv --out -`;
    assert.deepEqual(out.split('\r\n'), [
      HEADER,
      line(spent, '20.00', rest),
      line(whole, '25.00', rest),
      line(fresh, '25.00', rest),
      '',
    ]);
  });

  test('leaves the value empty if it is given at activation', async () => {
    const context = await merchant('Open');
    const { batch } = await generate(context, { reference: 'open', quantity: 1, expiryDate: EXPIRY });
    const [voucher] = (await vouchersOf(context, 'open')) as [Made];
    const { out } = await operator.run`batch export ${batch.transactionId} --format csv`;
    assert.equal(out, `${HEADER}\r\n${line(voucher, '', '"Open","Voucher","open"')}\r\n`);
  });
});

describe('a batch as a sheet', () => {
  const pdf = async (transactionId: string, name: string, ...args: string[]) => {
    const file = join(folder, name);
    const ran = await operator.run`batch export ${transactionId} --format pdf --out ${file} ${args}`;
    assert.equal(ran.status, 0, ran.err);
    return { pages: await readSheet(await readFile(file)), ...ran };
  };

  test('shows ten vouchers on a page, with barcodes that a scanner reads', async () => {
    const context = await merchant('Café Żółw Уют');
    const args = ['--merchant', String(context.merchant.id), '--quantity', '12', '--value', '25', '--wait'];
    const batch = await operator.json`batch generate ${args} --reference sheet --expiry 2099-12-31`;
    const vouchers = await vouchersOf(context, 'sheet');
    const { pages, out, err } = await pdf(batch.transactionId, 'sheet.pdf');
    assert.match(out, /^12 vouchers written to .*sheet\.pdf; recorded as export \d+ by /);
    assert.equal(err, '');
    assert.equal(pages.length, 2);
    for (const [index, page] of pages.entries()) {
      const own = vouchers.slice(10 * index, 10 * index + 10);
      assert.deepEqual(
        page.qr,
        own.map(({ code, pin }) => `${code}${pin}`),
      );
      assert.deepEqual(
        page.bars,
        own.map(({ code }) => code),
      );
      for (const { code, pin, serialNumber } of own) {
        assert.ok(page.text.includes(grouped(code)), 'the code in groups of four');
        assert.match(page.text, new RegExp(`\\b${pin}\\b`));
        assert.match(page.text, new RegExp(`\\b${serialNumber}\\b`));
      }
      assert.equal(page.text.split('Café Żółw Уют').length - 1, own.length);
      assert.equal(page.text.split('31 Dec 2099').length - 1, own.length);
      assert.equal(page.text.split('25.00').length - 1, own.length);
      assert.equal(page.text.split('USD').length - 1, own.length);
      assert.ok(page.text.includes(`Page ${index + 1} of 2`));
    }
  });

  test('says in German what a German customer reads, beside names of any script and length', async () => {
    for (const [name, shown] of [
      ['متجر الهدايا', 'متجر الهدايا'],
      ['חנות מתנות', 'חנות מתנות'],
      ['Donaudampfschifffahrtsgesellschaft für Geschenke aller Art', 'Donaudampfschifffahrtsgesel'],
      ['東京ギフト', 'Händler '],
    ] as const) {
      const context = await merchant(name);
      const { batch } = await make(context, `german-${context.merchant.id}`, 1, 1250.5);
      const file = `german-${context.merchant.id}.pdf`;
      const [page] = (await pdf(batch.transactionId, file, '--language', 'de')).pages;
      const text = page?.text ?? '';
      for (const each of ['GÜLTIG BIS', 'SERIENNR.', '31.12.2099', '1.250,50', 'USD', 'Seite 1 von 1'])
        assert.ok(text.includes(each), `${each} in ${text}`);
      assert.ok(text.normalize('NFKC').includes(shown), `${shown} in ${text}`);
      assert.doesNotMatch(text, /VALID|SERIAL|Batch|voucher/);
      assert.equal(page?.qr.length, 1);
    }
  });

  test('warns in German of a card that has to be activated', async () => {
    const context = await merchant('Aktivierung');
    const product = [
      '--code',
      'ACT',
      '--name',
      'Geschenk',
      '--currency',
      'USD',
      '--activation',
      'on-activation',
    ];
    await operator.run`product create ${product}`;
    const args = ['--merchant', String(context.merchant.id), '--quantity', '1', '--product', 'ACT', '--wait'];
    const batch = await operator.json`batch generate ${args} --reference act`;
    const [german] = (await pdf(batch.transactionId, 'act-de.pdf', '--language', 'de')).pages;
    assert.match(german?.text ?? '', /WERT WIRD BEI AKTIVIERUNG FESTGELEGT/);
    assert.match(german?.text ?? '', /ERST NACH DER AKTIVIERUNG GÜLTIG/);
    const [english] = (await pdf(batch.transactionId, 'act-en.pdf')).pages;
    assert.match(english?.text ?? '', /VALUE GIVEN AT ACTIVATION/);
    assert.match(english?.text ?? '', /NOT VALID BEFORE ACTIVATION/);
    const [{ code, serialNumber }] = (await vouchersOf(context, 'act')) as [Made];
    assert.deepEqual(english?.bars, [code, String(serialNumber)]);
    await operator.fails(/gtin/, ...typed`product set ACT --gtin 9506000134353`);
    await operator.run`product set ACT --gtin 9506000134352`;
    const [scanned] = (await pdf(batch.transactionId, 'act-gtin.pdf')).pages;
    assert.deepEqual([scanned?.bars, scanned?.others], [[code], 1]);
    const { kind, text } = barsOfSerial(serialNumber, '9506000134352');
    assert.deepEqual([kind, text], ['databarexpanded', `(01)09506000134352(21)${serialNumber}`]);
  });

  test('shows an identifier if the font lacks the letters of a name, and warns of it', async () => {
    const context = await merchant('東京ギフト');
    const { batch } = await make(context, '注文', 1);
    const { pages, err } = await pdf(batch.transactionId, 'tokyo.pdf');
    assert.match(err, /no letters for "東京ギフト"[^\n]*--font\n.*no letters for "注文"/);
    assert.ok(pages[0]?.text.includes(`Merchant ${context.merchant.id}`));
    assert.ok(pages[0]?.text.includes(batch.transactionId));
    const font = await pdf(batch.transactionId, 'font.pdf', '--font', FONTS.text);
    assert.match(font.err, /no letters for/);
    const file = join(folder, 'never.pdf');
    const args = ['batch', 'export', batch.transactionId, '--format', 'pdf', '--out', file];
    // A pipe without a writer would make the command wait for ever; a device has no end.
    const pipe = join(folder, 'pipe');
    execFileSync('mkfifo', [pipe]);
    for (const other of [folder, pipe])
      await operator.fails(/not a TrueType or OpenType font/, ...args, '--font', other);
  });
});

describe('a design of cards', () => {
  const SVG =
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 90 30"><path d="M0 0h90v30z" fill="gold"/></svg>';
  const drawn = async (name: string, text: string | Buffer) => {
    await writeFile(join(folder, name), text);
    return join(folder, name);
  };

  test('is set by the operator, and drawn on the cards of a product', async () => {
    const logo = await drawn('logo.svg', SVG);
    const look = ['--background', '#003366', '--color', '#ffffff', '--language', 'de', '--logo', logo];
    const made = await operator.json`design set spring --title ${'С днём рождения'} ${look}`;
    assert.deepEqual(made, {
      name: 'spring',
      title: 'С днём рождения',
      subtitle: null,
      language: 'de',
      background: '#003366',
      color: '#ffffff',
      hasLogo: true,
    });
    assert.deepEqual(await operator.json`design list`, [made]);
    await operator.fails(/design/, ...typed`product create --code NICE --name Nice --design missing`);
    await operator.run`product create --code NICE --name Nice --currency USD --design spring`;
    const context = await merchant('Designed');
    const args = ['--merchant', String(context.merchant.id), '--quantity', '11', '--value', '25', '--wait'];
    const batch = await operator.json`batch generate ${args} --product NICE --reference nice`;
    const file = join(folder, 'nice.pdf');
    await operator.run`batch export ${batch.transactionId} --format pdf --out ${file}`;
    const bytes = await readFile(file);
    const pages = await readSheet(bytes);
    const text = pages[0]?.text ?? '';
    for (const each of ['С днём рождения', 'Nice', 'GÜLTIG BIS', '25,00'])
      assert.ok(text.includes(each), each);
    assert.ok(!text.includes('Designed'));
    assert.deepEqual(
      pages.map(({ qr }) => qr.length),
      [10, 1],
    );
    // The logo and its transparency, once for all cards.
    assert.equal(bytes.toString('latin1').split('/Subtype /Image').length - 1, 2);
    const preview = join(folder, 'preview.pdf');
    assert.deepEqual(await operator.json`design preview spring --out ${preview}`, { file: preview });
    const [card, ...others] = await readSheet(await readFile(preview));
    assert.deepEqual([card?.qr, others], [['0000000000000000'], []], 'no code begins with 0');
    assert.ok(card?.text.includes('С днём рождения'));
    await operator.fails(/the product NICE has this design/, 'design', 'remove', 'spring');
    await operator.json`design set plain`;
    assert.deepEqual(await operator.json`design remove plain`, { name: 'plain', removed: true });
    assert.deepEqual(await operator.json`design list`, [made]);
  });

  test('refuses a logo that is broken, or more than shapes, and a text without letters', async () => {
    const inside = (element: string) => SVG.replace('<path', `${element}<path`);
    for (const [expected, text] of [
      [/has <script>/, inside('<script>alert(1)</script>')],
      [/has <image>/, inside('<image href="http://127.0.0.1/"/>')],
      [/has <use>/, inside('<use href="#a"/>')],
      [/document type/, `<!DOCTYPE svg [<!ENTITY a "b">]>${SVG}`],
      [/cannot be read/, SVG.slice(0, 80)],
      [
        /cannot be read/,
        Buffer.from(`89504e470d0a1a0a0000000d494844520000000900000009${'00'.repeat(40)}`, 'hex'),
      ],
      [/neither a PNG nor an SVG/, 'GIF89a'],
      [/more than 256 kB/, SVG.padEnd(262_145)],
    ] as const)
      await operator.fails(expected, ...typed`design set bad --logo ${await drawn('bad', text)}`);
    await operator.fails(/letters that the font/, ...typed`design set bad --title ${'東京'}`);
    await operator.fails(/background/, ...typed`design set bad --background red`);
    // The lightest grey that is enough on white, and the next one.
    await operator.json`design set grey --color ${'#767676'}`;
    await operator.fails(
      /contrast of 4.47:1 with the background #ffffff, and needs 4.5:1/,
      ...typed`design set grey --color ${'#777777'}`,
    );
    await operator.fails(/contrast of 1:1/, ...typed`design set bad --background ${'#000000'}`);
    assert.ok(!JSON.stringify(await operator.json`design list`).includes('bad'));
  });
});

describe('the file of an export', () => {
  test('is complete, readable by its owner only, and replaced only with --force', async () => {
    const { batch } = await make(await merchant('Files'), 'files', 2);
    const own = await mkdtemp(join(folder, 'own-'));
    const file = join(own, 'print.csv');
    const args = ['batch', 'export', batch.transactionId, '--format', 'csv', '--out', file];
    const made = await operator.json`${args} --by ${'Ann Smith'} --reason ${'first print'}`;
    assert.deepEqual(
      { ...made, exportId: '0' },
      {
        exportId: '0',
        transactionId: batch.transactionId,
        format: 'csv',
        file,
        vouchers: 2,
        by: 'Ann Smith',
        reason: 'first print',
      },
    );
    assert.equal((await stat(file)).mode & 0o777, 0o600);
    await writeFile(file, 'mine');
    await operator.fails(/is there already: --force overwrites it/, ...args);
    assert.equal(await readFile(file, 'utf8'), 'mine');
    await operator.json(...args, '--force');
    assert.match(await readFile(file, 'utf8'), /^"serialNumber"/);
    assert.deepEqual(await readdir(own), ['print.csv']);
    const at = (path: string) => ['batch', 'export', batch.transactionId, '--format', 'csv', '--out', path];
    await operator.fails(/its folder does not exist/, ...at(join(own, 'none', 'a.csv')));
    await operator.fails(/no ordinary file/, ...at(own), '--force');
    await operator.fails(/both need stdout/, ...at('-'), '--json');
    // A refused export released no codes, and is not recorded.
    assert.equal((await operator.json`batch show ${batch.transactionId}`).exports, 2);
  });

  test('is refused for a batch without vouchers to print', async () => {
    const context = await merchant('Unfinished');
    const { batch: running } = await make(context, 'running', 11);
    const { batch: canceled } = await make(context, 'canceled', 11);
    await cancelBatch(asOperator(operator.testService.service), canceled.transactionId);
    const none = '00000000-0000-7000-8000-000000000000';
    for (const [expected, id, code] of [
      [/is PROCESSING: it can be exported once it is COMPLETED/, running.transactionId, 'conflict'],
      [/is CANCELED: none of its vouchers can be used/, canceled.transactionId, 'conflict'],
      [/there is no batch/, none, 'not-found'],
    ] as const) {
      const refused = await operator.fails(
        expected,
        ...typed`batch export ${id} --format csv --json --out x`,
      );
      assert.deepEqual(refused, { status: 1, code });
    }
    await operator.fails(/--format takes csv or pdf/, ...typed`batch export ${none} --format xlsx`);
    const wanting = (format: string, language: string) =>
      ['batch', 'export', none, '--format', format, '--language', language] as const;
    await operator.fails(/--language needs --format pdf/, ...wanting('csv', 'de'));
    await operator.fails(/--language takes en or de/, ...wanting('pdf', 'fr'));
    await operator.fails(/--by takes one line/, ...typed`batch export ${none} --format csv --by ${'a\nb'}`);
  });
});

describe('the record of exports', () => {
  test('is returned with the batch', async () => {
    const { batch } = await make(await merchant('Told'), 'told', 3);
    const shown = () => operator.json`batch show ${batch.transactionId}`;
    assert.deepEqual([(await shown()).exports, (await shown()).lastExport], [0, null]);
    await operator.run`batch export ${batch.transactionId} --format csv`;
    await operator.run`batch export ${batch.transactionId} --format csv --by Ann --reason again`;
    const exports = await operator.json`batch exports ${batch.transactionId}`;
    const facts = exports.map(({ format, by, reason, vouchers, state }: Record<string, unknown>) => [
      format,
      by,
      reason,
      vouchers,
      state,
    ]);
    assert.deepEqual(facts, [
      ['csv', 'Ann', 'again', 3, 'complete'],
      ['csv', userInfo().username, null, 3, 'complete'],
    ]);
    assert.deepEqual([(await shown()).exports, (await shown()).lastExport], [2, exports[0].begunAt]);
    assert.match((await operator.run`batch exports ${batch.transactionId}`).out, /again/);
    const audited = await listAudit(operator.testService.service.db, `batch ${batch.transactionId}`, 10);
    assert.deepEqual(
      audited.map(({ action, actor, reason, after }) => [action, actor, reason, after]),
      exports.map(({ id, by, reason }: Record<string, unknown>) => [
        'batch.export',
        by,
        reason,
        { export: Number(id), format: 'csv', vouchers: 3 },
      ]),
    );
  });

  test('is written before the first voucher is read, and shows that an export was aborted', async () => {
    const { service } = operator.testService;
    const { batch } = await make(await merchant('Cut off'), 'cut off', 4);
    const ann = asOperator(service, 'Ann');
    const cut = exportBatch(ann, batch, 'csv', async (vouchers) => {
      const [begun] = await listExports(service.db, batch.id);
      assert.deepEqual([begun?.state, begun?.vouchers, begun?.endedAt], ['begun', 4, null]);
      for await (const page of vouchers) assert.equal(page.length, 4);
      throw new Error('the disk is full');
    });
    await assert.rejects(cut, /the disk is full/);
    const [aborted] = await listExports(service.db, batch.id);
    assert.deepEqual([aborted?.state, aborted?.vouchers, aborted?.by], ['aborted', 4, 'Ann']);
  });
});
