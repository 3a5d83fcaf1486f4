import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { readFile, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { INVISIBLE } from '../../src/cli/output.ts';
import { SETTINGS } from '../../src/config.ts';
import { fileOf, folderOf } from '../support/folder.ts';
import { Operator } from '../support/operator.ts';
import { readCommands } from '../support/program.ts';
import { typed } from '../support/scrip.ts';

const operator = Operator.ofTests();
let merchantId: string;

before(async () => {
  merchantId = (await operator.json`merchant create --name Kiosk --float 100`).id;
});

const USAGE = 2;

describe('the help', () => {
  test('is aligned, and at most 100 columns wide, for every command', async () => {
    const { status, out, err } = await operator.run('--help');
    assert.deepEqual([status, err], [0, '']);
    const commands = [...(await readCommands()).values()];
    assert.ok(commands.length > 50);
    for (const text of [out, ...commands.map((command) => command.helpInformation())])
      for (const line of text.split('\n')) assert.ok(line.length <= 100, line);
    for (const { name } of Object.values(SETTINGS)) assert.match(out, new RegExp(`^  ${name} {2,}\\S`, 'm'));
  });

  test('has an option for the version', async () => {
    const { version } = JSON.parse(await readFile(new URL('../../package.json', import.meta.url), 'utf8'));
    assert.deepEqual(await operator.run('--version'), { status: 0, out: `${version}\n`, err: '' });
  });
});

describe('the command line', () => {
  const topUp = (...args: string[]) => ['float', 'top-up', '--merchant', merchantId, ...args];
  const create = (...args: string[]) => ['merchant', 'create', '--name', 'Wrong', ...args];

  test('refuses unknown and missing arguments with exit status 2 and a hint', async () => {
    const cases: [RegExp, string[]][] = [
      [
        /unknown option '--amout' .*--amount.*see `scrip float top-up --help`/,
        topUp('--amount', '5', '--amout', '6'),
      ],
      [/required option '--amount <amount>' not specified \(see `scrip float top-up --help`\)/, topUp()],
      [/missing required argument 'serial' \(see `scrip voucher show --help`\)/, ['voucher', 'show']],
      [/unknown command 'merchants' .*merchant\?.*see `scrip --help`/, ['merchants']],
      [/unknown command 'make' .*see `scrip merchant --help`/, ['merchant', 'make']],
      [/too many arguments.*see `scrip merchant show --help`/, ['merchant', 'show', '1', '2']],
    ];
    for (const [expected, args] of cases)
      assert.equal((await operator.fails(expected, ...args)).status, USAGE);
    const asDocument = await operator.fails(/--amount/, ...topUp('--json'));
    assert.deepEqual(asDocument, { status: USAGE, code: 'usage' });
  });

  test('refuses a pipe, a device and a large file, and names a file as one, not as base64', async (t) => {
    const pipe = join(folderOf(t), 'pipe');
    // It has no writer: to open it would take for ever.
    execFileSync('mkfifo', [pipe]);
    const large = await fileOf(t, 'large', '');
    await truncate(large, 65 * 1024 ** 2);
    const statement = (file: string) => ['bank', 'import', file, '--account', 'House', '--format', 'csv'];
    const serials = (file: string) => ['voucher', 'bulk', 'block', '--serials', file];
    const logo = (file: string) => ['design', 'set', 'spring', '--title', 'Gift', '--logo', file];
    for (const path of [pipe, '/dev/zero'])
      for (const args of [statement(path), serials(path), logo(path)])
        await operator.fails(new RegExp(`^scrip: ${path} is no ordinary file$`, 'm'), ...args);
    await operator.fails(/^scrip: the file has more than 64 MB$/m, ...statement(large));
    const { status } = await operator.fails(/^scrip: --serials has more than 64 MB$/m, ...serials(large));
    assert.equal(status, USAGE);
    const { out } = await operator.run('bank', 'import', '--help');
    assert.doesNotMatch(out, /base64/);
  });

  test('refuses an option that is given twice, unless it is a list', async () => {
    const cases: [RegExp, string[]][] = [
      [/--amount is given twice/, topUp('--amount', '5', '--amount', '6')],
      [/--by is given twice/, ['--by', 'anna', ...topUp('--amount', '5', '--by', 'bert')]],
      [/--json is given twice/, topUp('--amount', '5', '--json', '--json')],
      [/--no-opaque is given twice/, ['merchant', 'set', merchantId, '--opaque', '--no-opaque']],
    ];
    for (const [expected, args] of cases)
      assert.equal((await operator.fails(expected, ...args)).status, USAGE);
    const scopes = ['--scope', 'balance', '--scope', 'redeem'];
    await operator.json`api-key create --merchant ${merchantId} ${scopes}`;
  });

  test('refuses an option without effect', async () => {
    const batch = '00000000-0000-7000-8000-000000000000';
    const cases: [RegExp, string[]][] = [
      [/--currency needs --float/, create('--currency', 'EUR')],
      [/nothing to change/, ['merchant', 'set', merchantId]],
      [/there is nothing to change/, ['product', 'set', 'DEFAULT']],
      [/--font needs --format pdf/, ['batch', 'export', batch, '--format', 'csv', '--font', 'x.ttf']],
      [/--force needs a file/, ['batch', 'export', batch, '--format', 'csv', '--force']],
      [/leave out --state/, ['webhook', 'deliveries', '1', '--event', batch, '--state', 'failed']],
    ];
    for (const [expected, args] of cases)
      assert.equal((await operator.fails(expected, ...args)).status, USAGE);
  });

  test('refuses an amount that is not in plain digits', async () => {
    for (const amount of ['1e5', '+5', '-1', '1,000', ' 5', '.5', 'much', '']) {
      const { status } = await operator.fails(/plain digits/, ...create('--float', amount));
      assert.equal(status, USAGE, amount);
    }
    await operator.fails(/plain digits/, ...typed`batch generate --merchant 1 --quantity 1 --value 1e1`);
    assert.equal((await operator.json`float show --merchant ${merchantId}`)[0].balance, 100);
  });

  test('refuses text with invisible characters', async () => {
    const text = 'Ki\u202eosk';
    const order = ['batch', 'generate', '--merchant', merchantId, '--quantity', '1', '--value', '1'];
    for (const args of [
      ['merchant', 'create', '--name', text],
      ['product', 'create', '--code', 'SEEN', '--name', text],
      [...order, '--reference', text],
      ['merchant', 'suspend', merchantId, '--reason', text],
    ])
      await operator.fails(/one line without control, direction or zero-width characters/, ...args);
    for (const unseen of [
      '\u0007',
      '\u009b',
      '\u2066',
      '\u200b',
      '\u200c',
      '\u200d',
      '\ufeff',
      '\u2028',
      '\u3164',
    ])
      assert.notEqual(`Ki${unseen}osk`.search(INVISIBLE), -1, JSON.stringify(unseen));
    for (const seen of ['Żółw & Söhne', 'نمی\u200cدانم', '👩‍🚀 ❤️', '東京ギフト'])
      assert.equal(seen.search(INVISIBLE), -1, seen);
  });

  test('names a merchant, product or currency that is unknown, and a product that exists already', async () => {
    const product = ['product', 'create', '--code', 'NONE', '--name', 'None'];
    const cases: [RegExp, string[], string][] = [
      [/there is no merchant 999/, [...product, '--merchant', '999'], 'not-found'],
      [/there is no product NONE$/m, create('--product', 'NONE'), 'not-found'],
      [/there is no merchant 999/, ['float', 'show', '--merchant', '999'], 'not-found'],
      [
        /--currency has the wrong form: it is written like USD/,
        topUp('--amount', '5', '--currency', 'EURO'),
        'usage',
      ],
      [
        /the product DEFAULT exists already/,
        ['product', 'create', '--code', 'DEFAULT', '--name', 'X'],
        'exists',
      ],
    ];
    for (const [expected, args, code] of cases)
      assert.equal((await operator.fails(expected, ...args, '--json')).code, code);
    const codes = (await operator.json`product list`).map((each: { code: string }) => each.code);
    assert.deepEqual(codes, ['DEFAULT']);
  });
});

describe('the completion', () => {
  const completed = async (script: string, ...words: string[]) => {
    const list = words.map((word) => `'${word}'`).join(' ');
    const last = words.length - 1;
    const run = `${script}\nCOMP_WORDS=(${list}); COMP_CWORD=${last}; _scrip; echo "\${COMPREPLY[*]}"`;
    return (await promisify(execFile)('bash', ['-c', run])).stdout.trim().split(' ');
  };

  test('for bash completes commands and options', async () => {
    const { out } = await operator.run`completion bash`;
    assert.deepEqual(await completed(out, 'scrip', 'merch'), ['merchant']);
    assert.deepEqual(await completed(out, 'scrip', 'settlement', 'terms', ''), ['list', 'set']);
    assert.deepEqual(await completed(out, 'scrip', 'voucher', 'block', '1', '--j'), ['--json']);
    const { out: zsh } = await operator.run`completion zsh`;
    assert.ok(zsh.endsWith(out));
  });

  test('for fish lists commands and options with their descriptions', async () => {
    const { out } = await operator.run`completion fish`;
    const lines = out.split('\n');
    const at = (path: string) => `-n 'test "$(__scrip_path)" = "${path}"'`;
    assert.ok(lines.some((line) => line.includes(`${at('merchant')} -a list -d `)));
    assert.ok(lines.some((line) => line.includes(`${at('float top-up')} -l amount -r -d `)));
    await operator.fails(/completion takes bash or zsh or fish/, ...typed`completion tcsh`);
  });
});
