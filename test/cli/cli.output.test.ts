import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { generate } from '../../src/batches/generate.ts';
import { explainFile } from '../../src/cli/file.ts';
import { numberOf } from '../../src/cli/output.ts';
import type { Context } from '../../src/context.ts';
import { redeem } from '../../src/redemptions/redeem.ts';
import { updateRedemption } from '../../src/redemptions/update.ts';
import { DAY_MS, isoDay } from '../../src/time.ts';
import { folderOf } from '../support/folder.ts';
import { type Made, makeVouchers, Operator, vouchersOf } from '../support/operator.ts';
import { ENVIRONMENT, MAIN, startScrip } from '../support/scrip.ts';

const operator = Operator.ofTests({ SCRIP_WEBHOOK_ALLOW_PRIVATE: 'true' });
let context: Context;
let merchantId: string;
/** A reference of the greatest width, with a mark that would reverse the line. */
const REFERENCE = `sale-${'x'.repeat(90)}\u202e`;

before(async () => {
  const name = `Kiosk ${'at the corner '.repeat(12)}`;
  const permit = ['--permit', 'update-redemption'];
  const made = await operator.json`merchant create --name ${name} --float 1000 ${permit}`;
  merchantId = made.id;
  context = await operator.enter(made);
});

describe('the output', () => {
  /** Runs a command in a shell, and returns what that prints, with the exit status of the command. */
  const inShell = async (script: string) => {
    const { url, keys } = operator.testService;
    const env = { ...ENVIRONMENT, SCRIP_DATABASE_URL: url, SCRIP_KEYS: keys };
    const command = `${process.execPath} ${MAIN}`;
    const { stderr } = await promisify(execFile)('/bin/sh', ['-c', script.replace('scrip', command)], {
      env,
    });
    return stderr;
  };

  test('whose reader has ended is no fault of the database', async () => {
    const [from, to] = [0, DAY_MS].map((later) => isoDay(Date.now() + later));
    const report = `books report R8 --merchant ${merchantId} --from ${from} --to ${to}`;
    assert.equal(await inShell(`{ scrip ${report}; echo $? >&2; } | true`), '0\n');
  });

  test('that cannot be written is told in one line, with a status that leaves the outcome open', async () => {
    const told = 'scrip: the output cannot be written (ENOSPC)\n3\n';
    assert.equal(await inShell('scrip merchant list > /dev/full; echo $? >&2'), told);
    const [json = ''] = (await inShell('scrip merchant list --json > /dev/full || true')).split('\n');
    assert.deepEqual(JSON.parse(json).error.code, 'unknown');
  });
});

test('a file or folder that cannot be used is told in one line, with the reason', async () => {
  const told = async (...args: string[]) => {
    const { status, err } = await startScrip({}, args).ended;
    return [status, err];
  };
  const file = new URL(import.meta.url).pathname;
  assert.deepEqual(await told('witness', `${file}/web`, '/nowhere'), [
    1,
    `scrip: ${file}/web/checkpoint cannot be used: a folder in its path is a file: check the path\n`,
  ]);
  const words = ['bank', 'import', '/nowhere/june.csv', '--account', 'main', '--format', 'csv'];
  await operator.fails(
    /^scrip: \/nowhere\/june\.csv cannot be used: it, or a folder above it, does not exist/,
    ...words,
  );
  const full = Object.assign(new Error('ENOSPC'), { code: 'ENOSPC', syscall: 'write' });
  assert.match(explainFile(full) ?? '', /^a file cannot be written: the disk is full/);
  // Of a socket, and of the database.
  for (const syscall of ['listen', 'connect'])
    assert.equal(explainFile(Object.assign(new Error(), { code: 'EACCES', syscall })), undefined);
  assert.equal(explainFile(new TypeError('a bug')), undefined);
});

describe('a table', () => {
  test('is at most 120 columns wide, whatever is in it', async () => {
    const url = `http://127.0.0.1:9/${'long/'.repeat(40)}`;
    const { id } = await operator.json`webhook add --merchant ${merchantId} --url ${url}`;
    await operator.run`webhook test ${id}`;
    const why = ['--reason', 'a reason that is explained at length '.repeat(12), '--by', 'Ann '.repeat(20)];
    await operator.run`product create --code ${'P'.repeat(50)} --name ${'Product '.repeat(20)} ${why}`;
    const [{ serialNumber, code, pin }] = (await makeVouchers(context, REFERENCE, 1)) as [Made];
    await redeem(context, { code, pin, amount: 1, reference: REFERENCE });
    const [batch] = await operator.json`batch list --product DEFAULT`;
    assert.deepEqual(await operator.json`batch list --product ${'P'.repeat(50)}`, []);
    await operator.run`batch export ${batch.transactionId} --format csv ${why}`;
    const commands = [
      ['merchant', 'list'],
      ['product', 'list'],
      ['api-key', 'list', '--merchant', merchantId],
      ['keyring', 'show'],
      ['float', 'show', '--merchant', merchantId],
      ['batch', 'list'],
      ['batch', 'exports', batch.transactionId],
      ['voucher', 'show', String(serialNumber)],
      ['webhook', 'list'],
      ['webhook', 'deliveries', id],
      ['audit', 'list'],
      ['reconcile'],
    ];
    for (const command of commands) {
      const { status, out } = await operator.run(...command);
      assert.equal(status, 0, command.join(' '));
      // A line outside the table may be as long as a name.
      const lines = command[1] === 'show' && command[0] === 'voucher' ? out.slice(out.indexOf('┌')) : out;
      for (const line of lines.split('\n'))
        assert.ok([...line].length <= 120, `${command.join(' ')}: ${line}`);
      assert.ok(!out.includes('\u202e'), command.join(' '));
    }
  });

  test('without rows says so if its columns are too wide for one line', async () => {
    assert.equal((await operator.run`settlement draft`).out, 'no rows\n');
  });

  test('shows the invisible characters of references as escapes, and so does JSON', async () => {
    const [{ transactionId }] = await operator.json`batch list`;
    const shown = await operator.run`batch show ${transactionId}`;
    assert.match(shown.out, /^reference +sale-x+\\u\{202e\}$/m);
    const { out } = await operator.run`batch show ${transactionId} --json`;
    assert.ok(!out.includes('\u202e'));
    assert.equal(JSON.parse(out).reference, REFERENCE);
  });
});

describe('JSON', () => {
  test('has ids as strings of digits, absent references as null, and movements with their sign', async () => {
    const [{ serialNumber, code, pin }] = (await makeVouchers(context, 'json', 1)) as [Made];
    await redeem(context, { code, pin, amount: 10, reference: 'sale' });
    await updateRedemption(context, { reference: 'sale', amountUsed: 4 });
    const replacement = await operator.json`voucher replace ${serialNumber}`;
    const old = await operator.json`voucher show ${serialNumber}`;
    assert.deepEqual([old.serialNumber, old.replacedBy], [String(serialNumber), replacement.serialNumber]);
    assert.deepEqual([old.merchantId, old.pinLocked, old.pinLockedUntil], [merchantId, false, null]);
    const moved = old.timeline.filter(({ kind }: { kind: string }) => kind === 'money');
    const entries = moved.map(({ what, amount, reference }: Record<string, unknown>) => [
      what,
      amount,
      reference,
    ]);
    assert.deepEqual(entries, [
      ['REPLACEMENT', -26, null],
      ['REDEMPTION', -4, 'NEW-sale'],
      ['REDEMPTION_REVERSAL', 10, 'CANCEL-sale'],
      ['REDEMPTION', -10, 'sale'],
      ['ACTIVATION', 30, null],
    ]);
    const ids = /^(id|.*Id|serialNumber|replacedBy)$/;
    const check = (value: unknown, name = ''): void => {
      if (ids.test(name))
        assert.ok(value === null || typeof value === 'string', `${name}: ${JSON.stringify(value)}`);
      if (typeof value !== 'object' || value === null) return;
      for (const [key, each] of Object.entries(value)) check(each, Array.isArray(value) ? name : key);
    };
    const [batch] = await operator.json`batch list`;
    const commands = [
      ['merchant', 'list'],
      ['merchant', 'show', merchantId],
      ['product', 'list'],
      ['api-key', 'list', '--merchant', merchantId],
      ['batch', 'list'],
      ['batch', 'show', batch.transactionId],
      ['batch', 'exports', batch.transactionId],
      ['webhook', 'list'],
    ];
    for (const command of commands) check(await operator.json(...command));
    check(old);
  });
});

test('a command that makes a file refuses --json and --force without --out', async (t) => {
  await operator.json`design set shop --title Shop`;
  const out = join(folderOf(t), 'card.pdf');
  const preview = ['design', 'preview', 'shop'];
  await operator.fails(/--json and the file both need stdout: give --out FILE/, ...preview, '--json');
  await operator.fails(/--force needs a file: give --out FILE/, ...preview, '--force');
  assert.deepEqual(await operator.json(...preview, '--out', out), { file: out });
  const report = ['books', 'report', 'R1', '--from', '2026-03-01', '--to', '2026-03-02'];
  await operator.fails(/--out and --force need --format/, ...report, '--force');
});

test('an inactive voucher shows the value that is reserved for it', async () => {
  await operator.run`product create --code STOCK --name Stock --activation on-activation`;
  await generate(context, { reference: 'stock', quantity: 1, value: 20, productCode: 'STOCK' });
  const [{ serialNumber }] = (await vouchersOf(context, 'stock')) as [Made];
  const { balance, value, reserved, state } = await operator.json`voucher show ${serialNumber}`;
  assert.deepEqual([balance, value, reserved, state], [0, null, 20, 'INACTIVE']);
  const { out } = await operator.run`voucher show ${serialNumber}`;
  assert.match(out, /^reserved +20\.00 USD$/m);
});

test('a number is followed by its noun in the singular or plural', () => {
  const forms = [
    [1, 'entry', '1 entry'],
    [2, 'entry', '2 entries'],
    [0, 'day', '0 days'],
    [2, 'voucher', '2 vouchers'],
  ] as const;
  for (const [number, noun, text] of forms) assert.equal(numberOf(number, noun), text);
});
