import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { chmod, mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { BATCH_JOBS } from '../../src/batches/fill.ts';
import { startJobs } from '../../src/jobs/queue.ts';
import { makeToken } from '../support/operator.api.ts';
import { standIn } from '../support/stand-in.ts';
import { BIN, Terminal } from '../support/terminal.ts';
import { withWrongPin } from '../support/till.ts';

/** The command line of the client, in processes of its own, against the service. */

const modeOf = async (path: string) => (await stat(path)).mode & 0o777;

describe('the command line of the merchant', () => {
  it('undoes a redemption, with a token of the portal', async (t) => {
    const terminal = await Terminal.open(t);
    const { till, env } = terminal;
    const { code, pin } = await till.voucher(25);
    await terminal.json(['redeem', code, '--amount', '5', '--reference', 'order-1'], pin);
    await terminal.fails(1, /undo: Unauthorized .*portalToken must be given/, ['undo', 'order-1']);
    env['SCRIP_PORTAL_TOKEN'] = await makeToken(till.testService, ['cashier'], till.merchant.id);
    const reversed = await terminal.json(['undo', 'order-1', '--variant', 'b']);
    assert.deepEqual([reversed.outcome, reversed.amount], ['reversed', 5]);
    const { status, out } = await terminal.run(['undo', 'order-2']);
    assert.deepEqual([status, /outcome +given-up/.test(out)], [0, true], out);
    assert.equal(await till.balanceOf({ code, pin, serialNumber: 0 }), 25);
  });

  it('generates, checks, redeems, updates and lists, and prints JSON', async (t) => {
    const terminal = await Terminal.open(t);
    const batch = await terminal.json([
      'generate',
      '--quantity',
      '2',
      '--value',
      '25',
      '--reference',
      'first',
    ]);
    assert.deepEqual(
      [batch.reference, batch.status, batch.quantity, batch.vouchers.length, batch.replayed],
      ['first', 'COMPLETED', 2, 2, false],
    );
    const [{ code, pin, serialNumber }] = batch.vouchers;
    const balance = await terminal.json(['balance', code], `${pin}\n`);
    assert.deepEqual([balance.balance, balance.value, balance.serialNumber], [25, 25, serialNumber]);
    const redeem = ['redeem', code, '--amount', '10.50', '--reference', 'order-1'];
    const redeemed = await terminal.json(redeem, pin);
    assert.deepEqual([redeemed.amount, redeemed.reference, redeemed.replayed], [10.5, 'order-1', false]);
    // Without the code as an argument, both are read from standard input, in one line or two.
    const again = ['redeem', '--amount', '10.5', '--reference', 'order-1'];
    for (const input of [`${code}${pin}`, `${code}\n${pin}\n`]) {
      const replay = await terminal.json(again, input);
      assert.deepEqual([replay.transactionId, replay.replayed], [redeemed.transactionId, true]);
    }
    const updated = await terminal.json(['update', 'order-1', '--amount-used', '4']);
    assert.deepEqual(updated.summary, { originalAmount: 10.5, newAmount: 4, reference: 'order-1' });
    assert.equal((await terminal.json(['updated', 'order-1'])).newTransaction.amount, 4);
    assert.equal((await terminal.json(['transaction', 'order-1'])).reference, 'NEW-order-1');
    await terminal.json(['redeem', code, '--amount', '1', '--reference', 'order-2'], pin);
    assert.equal((await terminal.json(['reverse', 'order-2'])).newTransaction, null);
    assert.equal((await terminal.json(['transactions'])).length, 7);
    assert.equal(await terminal.till.balanceOf({ code, pin, serialNumber }), 21);
    const inB = await terminal.json([
      'generate',
      '--quantity',
      '1',
      '--variant',
      'b',
      '--expiry',
      '2099-12-31',
    ]);
    assert.deepEqual([inB.value, inB.expiryDate], [null, '2099-12-31T23:59:59.999Z']);
    const activate = [
      'activate',
      '--variant',
      'b',
      '--serial',
      String(inB.vouchers[0].serialNumber),
      '--value',
      '7',
    ];
    assert.deepEqual((await terminal.json(activate)).amount, 7);
  });

  it('prints tables and messages for people', async (t) => {
    const terminal = await Terminal.open(t);
    const { out, err } = await terminal.run(['generate', '--quantity', '1', '--value', '25']);
    const [, code = '', pin = ''] = /(\d{12}) +(\d{4})$/m.exec(out) ?? [];
    assert.match(err, /^reference [0-9a-f-]{36}\n$/);
    assert.match(out, /^status +COMPLETED$/m);
    const balance = await terminal.run(['balance', code], { input: pin });
    assert.match(balance.out, /^balance +25$/m);
    assert.match(balance.out, /^2.+ACTIVATION +25 +[0-9a-f-]{36}$/m);
    assert.ok(!balance.out.includes(code) && balance.err === '');
    assert.match(
      (await terminal.run(['transactions'])).out,
      /^time +type +amount +voucher +reference +refund$/m,
    );
    await terminal.fails(2, /the PIN is expected on standard input/, ['balance', code]);
    const wrong = withWrongPin({ pin }).pin;
    const refused = await terminal.fails(1, /Invalid PIN \(55\)/, ['balance', code], { input: wrong });
    assert.match(refused.err, /for the customer: Die PIN/);
    assert.ok(!refused.err.includes(wrong) && !refused.err.includes(code));
    const asDocument = await terminal.fails(1, /55/, ['balance', code, '--json'], { input: wrong });
    assert.equal(JSON.parse(asDocument.out).error.code, 'invalidPin');
  });

  it('refuses wrong usage before it sends a request, and prints no code or PIN', async (t) => {
    const terminal = await Terminal.open(t);
    const code = '482911117641';
    const cases: [RegExp, string[]][] = [
      [/there is no such command/, [`${code}1234`]],
      [/--quantity is missing/, ['generate']],
      [/--value is missing/, ['generate', '--quantity', '2']],
      [/--value must be an amount/, ['generate', '--quantity', '2', '--value', '1e3']],
      [
        /more digits than can be sent exactly/,
        ['generate', '--quantity', '2', '--value', '9007199254740993'],
      ],
      [/--quantity must be a whole number/, ['generate', '--quantity', '0', '--value', '2']],
      [
        /--expiry needs --variant b/,
        ['generate', '--quantity', '2', '--value', '2', '--expiry', '2099-01-01'],
      ],
      [/--product needs --variant a/, ['generate', '--quantity', '2', '--variant', 'b', '--product', 'X']],
      [/--expiry must be a day/, ['generate', '--quantity', '2', '--variant', 'b', '--expiry', '2099-04-31']],
      [/a code of 16 digits contains the PIN/, ['balance', `${code}1234`]],
      [/there is no option --pin/, ['balance', code, '--pin', '1234']],
      [/one argument too many/, ['balance', code, '1234']],
      [/--amount is missing/, ['redeem', code]],
      [/--amount-used is missing/, ['update', 'order-1']],
      [/variant b has no updates/, ['reverse', 'order-1', '--variant', 'b']],
      [/--variant must be one of a, b/, ['transactions', '--variant', 'c']],
      [/--variant needs a value/, ['transactions', '--variant']],
    ];
    for (const [expected, args] of cases) {
      const { out, err } = await terminal.fails(2, expected, args);
      assert.equal(out, '');
      assert.ok(!err.includes(code) && !err.includes('1234'));
    }
    assert.equal((await terminal.json(['transactions'])).length, 0);
  });

  it('writes vouchers to a CSV file of mode 600, completely or not at all', async (t) => {
    const terminal = await Terminal.open(t);
    const { service } = terminal.till.testService;
    const worker = startJobs(service, [BATCH_JOBS]);
    try {
      const path = join(terminal.folder, 'vouchers.csv');
      const order = [
        'generate',
        '--quantity',
        '1234',
        '--value',
        '2',
        '--reference',
        'big',
        '--out',
        'vouchers.csv',
      ];
      const written = await terminal.json(order);
      assert.deepEqual(
        [written.status, written.file, written.vouchers],
        ['COMPLETED', 'vouchers.csv', undefined],
      );
      const rows = (await readFile(path, 'utf8')).trimEnd().split('\r\n');
      assert.equal(rows[0], '"serialNumber","code","pin"');
      assert.equal(
        new Set(rows.slice(1).filter((row) => /^"\d{1,15}","[1-9]\d{11}","\d{4}"$/.test(row))).size,
        1234,
      );
      assert.equal(await modeOf(path), 0o600);
      await terminal.fails(1, /exists: --force overwrites it/, order);
      assert.equal((await terminal.json([...order, '--force'])).replayed, true);
      assert.deepEqual(await readdir(terminal.folder), ['vouchers.csv']);
      await terminal.fails(1, /cannot be written \(ENOENT\)/, ['download', 'big', '--out', 'nowhere/x.csv']);
      const { out } = await terminal.run(['download', 'big']);
      assert.equal(out, await readFile(path, 'utf8'));
      const document = await terminal.json(['download', 'big', '--wait']);
      assert.deepEqual([document.reference, document.vouchers.length], ['big', 1234]);
      await terminal.fails(1, /Vouchers not found|Not found \(60\)/, [
        'download',
        'other',
        '--out',
        'other.csv',
      ]);
      assert.deepEqual(await readdir(terminal.folder), ['vouchers.csv']);
    } finally {
      await worker.stop();
    }
  });

  it('reads credentials from the environment, or from a file that only its owner can read', async (t) => {
    const terminal = await Terminal.open(t);
    const { SCRIP_BASE_URL, SCRIP_KEY_ID, SCRIP_SECRET = '', PATH = '', HOME = '' } = terminal.env;
    const bare = { PATH, HOME };
    await terminal.fails(1, /SCRIP_BASE_URL, SCRIP_KEY_ID, SCRIP_SECRET not set/, ['transactions'], {
      env: bare,
    });
    const folder = join(terminal.folder, '.config', 'scrip');
    const path = join(folder, 'credentials');
    await mkdir(folder, { recursive: true });
    const text = `# test\nSCRIP_BASE_URL=${SCRIP_BASE_URL}\nSCRIP_KEY_ID = ${SCRIP_KEY_ID}\nSCRIP_SECRET="${SCRIP_SECRET}"\n`;
    await writeFile(path, text, { mode: 0o600 });
    for (const mode of [0o640, 0o604, 0o620]) {
      await chmod(path, mode);
      const { err } = await terminal.fails(1, /can be read by others/, ['transactions'], { env: bare });
      assert.ok(!err.includes(SCRIP_SECRET));
    }
    await chmod(path, 0o600);
    assert.equal((await terminal.run(['transactions', '--json'], { env: bare })).out, '[]\n');
    const wrongKey = { ...bare, SCRIP_KEY_ID: 'nobody', SCRIP_SECRET: 'nothing' };
    await terminal.fails(1, /Unauthorized \(01\)/, ['transactions'], { env: wrongKey });
    const half = { ...bare, SCRIP_KEY_ID: 'nobody' };
    await terminal.fails(1, /SCRIP_SECRET not set/, ['transactions'], { env: half });
    await writeFile(path, `${text}SCRIP_SECRIT=x\n`);
    await terminal.fails(1, /line 5: it must be one of/, ['transactions'], { env: bare });
    const elsewhere = { ...bare, SCRIP_CREDENTIALS: join(terminal.folder, 'none') };
    await terminal.fails(1, /cannot be read \(ENOENT\)/, ['transactions'], { env: elsewhere });
  });

  it('exits with status 3 if the outcome is unknown, and prints what to do', async (t) => {
    const terminal = await Terminal.open(t);
    const voucher = await terminal.till.voucher(25);
    // Forwards every request to the service, and drops the answer.
    const { url: lost } = await standIn(t, async (request, response) => {
      let body = '';
      for await (const piece of request) body += piece;
      const { authorization = '' } = request.headers;
      const headers = { authorization, 'content-type': 'application/json' };
      await fetch(terminal.till.testService.baseUrl + request.url, { method: 'POST', headers, body });
      response.destroy();
    });
    const args = ['redeem', voucher.code, '--amount', '5'];
    const failed = await terminal.fails(
      3,
      /once, or not at all/,
      [...args, '--base-url', lost, '--timeout', '1'],
      {
        input: voucher.pin,
      },
    );
    const [, reference = ''] = /^reference (\S+)$/m.exec(failed.err) ?? [];
    assert.ok(failed.err.includes(`scrip-client transaction ${reference}`));
    assert.ok(failed.err.includes(`--reference ${reference}`));
    assert.equal((await terminal.json(['transaction', reference])).amount, 5);
    assert.equal((await terminal.json([...args, '--reference', reference], voucher.pin)).replayed, true);
    assert.equal(await terminal.till.balanceOf(voucher), 20);
  });

  it('shows the help of the program and of each command', async (t) => {
    const terminal = await Terminal.open(t);
    const { out, status } = await terminal.run(['--help']);
    assert.equal(status, 0);
    const names = [...out.matchAll(/^ {2}([a-z]+) {2,}/gm)].map(([, name = '']) => name);
    assert.ok(names.length >= 10 && names.includes('redeem'), names.join());
    for (const name of names) {
      const help = await terminal.run([name, '--help']);
      assert.ok(
        help.status === 0 && help.err === '' && help.out.startsWith(`Usage: scrip-client ${name}`),
        name,
      );
    }
    assert.match((await terminal.run(['--version'])).out, /^\d+\.\d+\.\d+\n$/);
    assert.equal((await terminal.run([])).status, 2);
  });

  it('asks for the PIN without echo at a terminal', { skip: process.platform !== 'linux' }, async (t) => {
    const terminal = await Terminal.open(t);
    const { code, pin } = await terminal.till.voucher(25);
    const shown = await new Promise<string>((resolve) => {
      const line = `${process.execPath} ${BIN} balance ${code}`;
      const child = spawn('script', ['-qefc', line, '/dev/null'], {
        env: { ...terminal.env, TERM: 'xterm' },
      });
      let text = '';
      child.stdout.on('data', (piece) => {
        text += piece;
        if (text.endsWith('PIN (not shown): '))
          child.stdin.write(`${pin.slice(0, 2)}x\u007f${pin.slice(2)}\r`);
      });
      child.on('close', () => resolve(text));
    });
    assert.match(shown, /balance +25\r/);
    assert.doesNotMatch(shown, new RegExp(`(?<![\\d-])${pin}(?![\\d-])`));
  });
});
