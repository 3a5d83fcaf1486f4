import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { openEmbedded } from '../../src/db/embedded.ts';
import { createLogger } from '../../src/log.ts';
import {
  findInFiles,
  misplaced,
  misplacedArguments,
  misplacedBytes,
  misplacedCredentials,
  misplacedHeaders,
  send,
  sendBytes,
  spellings,
} from '../support/canaries.ts';
import { type ApiRequest, DIALECTS, update, updateDetails, type Voucher } from '../support/dialects.ts';
import { basic } from '../support/harness.ts';
import { Installation } from '../support/installation.ts';
import { asOwner } from '../support/owner.ts';
import { Receiver } from '../support/receiver.ts';
import { ofFile } from '../support/scope.ts';
import { UNKNOWN, withWrongPin } from '../support/till.ts';
import { until } from '../support/until.ts';

/**
 * Searches everything that a service and its database have written or printed for codes, PINs, secrets
 * and keys.
 */

/** The name of a merchant. It is found, which proves that the search works. */
const CONTROL = 'control-that-is-found';

const t = ofFile();
let installation: Installation;
let dataDir: string;
let baseUrl: string;
let keyRing: string[];
const output: Record<string, string> = { commands: '', answers: '' };
const vouchers: Voucher[] = [];
const secrets: string[] = [];
let receiver: Receiver;
let embedded: Awaited<ReturnType<typeof openEmbedded>>;

const execute = (text: string) => asOwner(embedded.ownerUrl, text);

/** Runs a command. Its output is searched too, unless it shows a new secret. */
async function command(shown: 'search' | 'shows a secret', ...args: string[]) {
  const run = await installation.run(args);
  output['commands'] += run.err + (shown === 'search' ? run.out : '');
  return run.out;
}

const ask = (authorization: string, request: Parameters<typeof send>[2], headers?: Record<string, string>) =>
  send(baseUrl, authorization, request, headers);

before(async () => {
  installation = await Installation.make(t);
  installation.settings['SCRIP_LOG_LEVEL'] = 'trace';
  installation.settings['SCRIP_WEBHOOK_ALLOW_PRIVATE'] = 'true';
  dataDir = installation.at('data');
  embedded = await openEmbedded(dataDir, createLogger('silent'));
  t.after(() => embedded.release());
  for (const setting of [
    "log_statement = 'all'",
    'log_min_duration_statement = 0',
    'log_parameter_max_length = -1',
    'log_parameter_max_length_on_error = -1',
    'log_min_error_statement = error',
    'log_min_messages = debug1',
    'log_error_verbosity = verbose',
    'wal_compression = off',
  ]) {
    await execute(`alter system set ${setting}`);
  }
  await execute('select pg_reload_conf()');
  baseUrl = await installation.serve();
  t.after(() => installation.stop());
  receiver = await Receiver.start();
  t.after(() => receiver.stop());
  // It repeats the delivery, as a faulty receiver does.
  receiver.behave = (response, { text }) => response.writeHead(500).end(text);
  await useEverything();
  for (const { text, headers } of await receiver.has(8)) output['answers'] += text + JSON.stringify(headers);
  await execute('checkpoint');
});

async function useEverything(): Promise<void> {
  const create = `merchant create --name ${CONTROL} --permit update-redemption --float 100000 --json`;
  const { id, keyId, secret } = JSON.parse(await command('shows a secret', ...create.split(' ')));
  const rotated = JSON.parse(await command('shows a secret', 'api-key', 'rotate', keyId, '--json'));
  const webhook = ['webhook', 'add', '--merchant', id, '--url', receiver.url, '--json'];
  const endpoint = JSON.parse(await command('shows a secret', ...webhook));
  secrets.push(secret, rotated.secret, endpoint.secret, endpoint.secret.slice('whsec_'.length));
  const authorization = basic(keyId, secret);

  for (const [at, dialect] of DIALECTS.entries()) {
    const made = await ask(authorization, dialect.generate(`few-${at}`, 6, 25));
    const own: Voucher[] = JSON.parse(made.text).data.vouchers;
    vouchers.push(...own);
    const { statusCode } = JSON.parse(
      (await ask(authorization, dialect.generate(`many-${at}`, 300, 25))).text,
    );
    assert.equal(statusCode, '00');
    await askEverything(authorization, dialect, own, at);
    await misuse(authorization, secret, dialect.prefix, own[0] as Voucher);
  }
  const many = await until('the batch is complete', async () => {
    const { text } = await ask(authorization, { method: 'GET', path: '/api/v2/vouchers/many-0' });
    const { data } = JSON.parse(text);
    return data.status === 'COMPLETED' && (data.vouchers as Voucher[]);
  });
  vouchers.push(...many.slice(0, 3));
  assert.equal(vouchers.length, 15);
  await operate(authorization, id, endpoint.id);
  keyRing = (await readFile(join(dataDir, 'keys'), 'utf8')).trim().split('\n');
  assert.equal(keyRing.length, 3);
}

async function askEverything(
  authorization: string,
  dialect: (typeof DIALECTS)[number],
  [first, second, third]: readonly Voucher[],
  at: number,
): Promise<void> {
  assert.ok(first && second && third);
  for (const request of [
    dialect.balance(first),
    dialect.redeem(first, 10, `sale-${at}`),
    dialect.redeem(first, 10, `sale-${at}`),
    dialect.redeem(first, 11, `sale-${at}`),
    dialect.redeem(first, 10_000, 'too much'),
    dialect.redeem(withWrongPin(second), 1, 'wrong'),
    dialect.redeem({ ...second, code: UNKNOWN.code }, 1, 'unknown'),
    dialect.activate(second, 'active already'),
    dialect.lookup(`sale-${at}`),
    update(`sale-${at}`, 5),
    update(`sale-${at}`, 6),
    updateDetails(`sale-${at}`),
    dialect.list(),
  ]) {
    const { text } = await ask(authorization, request);
    // The answers of variant B to a redemption and a balance enquiry echo the code that was sent.
    if (!text.includes('"voucherCode"') && !text.includes('"code"')) output['answers'] += text;
  }
}

/** Sends codes, PINs and secrets in wrong places, and credentials in the wrong place and order. */
async function misuse(
  authorization: string,
  secret: string,
  prefix: string,
  voucher: Voucher,
): Promise<void> {
  const both = voucher.code + voucher.pin;
  for (const request of misplaced(prefix, voucher, secret)) {
    const { status, text, head } = await ask(authorization, request, misplacedHeaders(voucher));
    assert.ok(status < 500, text);
    output['answers'] += text + head;
  }
  for (const bytes of misplacedBytes(voucher, secret))
    output['answers'] += await sendBytes(Number(new URL(baseUrl).port), bytes);
  const list: ApiRequest = { method: 'GET', path: `${prefix}/transactions` };
  for (const credentials of misplacedCredentials(voucher, secret, authorization)) {
    output['answers'] += (await ask(`Basic ${btoa(credentials)}`, list)).text;
    output['answers'] += (await ask(`Bearer ${credentials}`, list)).text;
  }
  for (const method of ['PUT', 'DELETE', 'PATCH']) {
    const url = `${baseUrl}${prefix}/redeem?code=${both}`;
    output['answers'] += await (await fetch(url, { method, body: both, headers: { authorization } })).text();
  }
}

/** Runs the commands of an operator, and causes an error of the database that quotes a row. */
async function operate(authorization: string, merchantId: string, endpointId: string): Promise<void> {
  const [first, second, third] = vouchers.map(({ serialNumber }) => String(serialNumber)) as [
    string,
    string,
    string,
  ];
  await execute('alter table scrip.journal add constraint broken check (amount_minor <> 777) not valid');
  const broken = await ask(
    authorization,
    DIALECTS[0]?.redeem(vouchers[1] as Voucher, 7.77, 'breaks') as ApiRequest,
  );
  assert.equal(broken.status, 500);
  for (const args of [
    ['voucher', 'show', first],
    ['voucher', 'show', first, '--json'],
    ['voucher', 'block', second, '--reason', 'seen'],
    ['voucher', 'replace', third, '--json'],
    ['voucher', 'unlock-pin', first],
    ['api-key', 'list', '--merchant', merchantId, '--json'],
    ['batch', 'list', '--json'],
    ['webhook', 'list', '--json'],
    ['webhook', 'test', endpointId],
    ['webhook', 'deliveries', endpointId, '--json'],
    ['keyring', 'rotate'],
    ['keyring', 'show'],
    ['audit', 'list', '--json'],
    ['audit', 'verify'],
    ['reconcile', '--json'],
  ]) {
    await command('search', ...args);
  }
  for (const args of misplacedArguments(vouchers[0] as Voucher, secrets[0] as string))
    await command('search', ...args);
}

function find(what: string, text: string): string[] {
  return spellings(vouchers, secrets, keyRing)
    .filter((needle) => text.includes(needle))
    .map((needle) => `${what} holds ${JSON.stringify(needle)}`);
}

const search = (wanted: (path: string) => boolean) => findInFiles(dataDir, wanted, find, CONTROL);

describe('no code, PIN, secret or key is', () => {
  test('in the log of the service at level trace, or in its output', () => {
    const { out, err } = installation.serving.printed;
    assert.ok((err.match(/"msg":"request"/g)?.length ?? 0) > 50);
    assert.deepEqual([...find('stdout', out), ...find('stderr', err)], []);
  });

  test('in the log of the database with all statements and parameters', async () => {
    // On a slow machine it outgrows one file.
    const rotated = await readFile(join(dataDir, 'postgres.log.1'), 'utf8').catch(() => '');
    const log = rotated + (await readFile(join(dataDir, 'postgres.log'), 'utf8'));
    assert.match(log, /insert into audit/);
    assert.match(log, /violates check constraint "broken".*DETAIL: +Failing row contains/s);
    assert.match(log, /parameters: \$1 = /i);
    assert.ok(log.includes(CONTROL), 'parameters are logged');
    assert.deepEqual(find('postgres.log', log), []);
  });

  test('in a file of the database', async () => {
    const { found, files, control } = await search((path) => /\/base\/|\/global\//.test(path));
    assert.ok(files.length > 100 && control, 'the files that hold rows are searched');
    assert.deepEqual(found, []);
  });

  test('in its write-ahead log', async () => {
    const { found, files, control } = await search((path) => path.includes('/pg_wal/'));
    assert.ok(files.length > 0 && control, 'the write-ahead log is searched');
    assert.deepEqual(found, []);
  });

  test('in any other file of the data folder except the key file', async () => {
    const { found } = await search(
      (path) => !/\/base\/|\/global\/|\/pg_wal\//.test(path) && path !== join(dataDir, 'keys'),
    );
    assert.deepEqual(found, []);
  });

  test('in the title of a process, the output of a command or an answer', async () => {
    const titles = [];
    for (const name of await readdir('/proc').catch(() => []))
      if (/^\d+$/.test(name)) titles.push(await readFile(`/proc/${name}/cmdline`, 'latin1').catch(() => ''));
    assert.deepEqual(find('a process title', titles.join('\n')), []);
    assert.ok(output['commands']?.includes(CONTROL) || output['commands']?.includes('voucher.block'));
    assert.deepEqual(find('a command', output['commands'] ?? ''), []);
    assert.deepEqual(find('an answer', output['answers'] ?? ''), []);
  });
});
