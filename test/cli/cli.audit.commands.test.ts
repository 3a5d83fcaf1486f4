import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { OTHER_ACTIONS } from '../../src/audit/entries.ts';
import { sql } from '../../src/db/sql.ts';
import { PORTAL_OPERATIONS } from '../../src/operations/portal.ts';
import { OPERATIONS } from '../../src/operations/table.ts';
import { folderOf } from '../support/folder.ts';
import { Operator } from '../support/operator.ts';
import { ofFile } from '../support/scope.ts';
import { writeChange } from '../support/written-changes.ts';

/** Actions without a state before: they create something, or change nothing. */
const WITHOUT_BEFORE = [
  ...['merchant.create', 'api-key.create', 'product.create', 'batch.generate', 'batch.export'],
  ...['voucher.export', 'backup.note'],
  ...['token.create', 'webhook.add', 'webhook.test', 'webhook.resend'],
];

const operator = Operator.ofTests({ SCRIP_WEBHOOK_ALLOW_PRIVATE: 'true' });
/** Who runs the commands. */
let by = operator;
/** The operator with the key ring after its rotation. */
let ring: Operator;
const folder = folderOf(ofFile());

type Entry = Record<'actor' | 'origin' | 'reason' | 'action' | 'before' | 'after', unknown>;

const SOURCES = new URL('../../src/', import.meta.url);
const seen = new Set<unknown>();
const printed: string[] = [];

const AMOUNTS = /^(amount|balance|below|closing|maxValue|minValue|own|payable|refunded|value|worth)$/;

/** An amount is written with its currency, and never in minor units. */
function checkAmounts(details: unknown, action: unknown): void {
  if (typeof details !== 'object' || details === null) return;
  for (const [name, value] of Object.entries(details)) {
    assert.doesNotMatch(name, /Minor$/, `${action} has an amount in minor units`);
    if (AMOUNTS.test(name) && value !== null)
      assert.match(String(value), /^[A-Z]{3} -?\d+(\.\d+)?$/, `${action} says an amount with its currency`);
    checkAmounts(value, action);
  }
}

/** Runs a command, and checks its entries in the audit. */
async function changes(actions: string, ...args: string[]): Promise<string> {
  const [{ count }] = (await operator.testService.service.db.query<{ count: bigint }>(
    sql`select count(*) as count from audit`,
  )) as [{ count: bigint }];
  const { out, err } = await by.run(...args, '--by', 'anna', '--reason', 'as was agreed');
  assert.equal(err, '', args.join(' '));
  printed.push(out);
  const entries = await operator.testService.service.db.query<Entry>(
    sql`select * from audit where sequence > ${count} order by sequence`,
  );
  assert.equal(entries.map(({ action }) => action).join(' '), actions, args.join(' '));
  for (const entry of entries) {
    seen.add(entry.action);
    assert.deepEqual([entry.actor, entry.reason], ['anna', 'as was agreed']);
    assert.match(String(entry.origin), /^command line of \S+ at \S+$/);
    assert.notEqual(entry.after, null, `${entry.action} has a state after`);
    const [old, now] = [entry.before, entry.after].map((details) => JSON.parse(String(details)));
    for (const details of [old, now]) checkAmounts(details, entry.action);
    assert.deepEqual(writeChange(String(entry.action), old, now).wrong, [], args.join(' '));
    assert.equal(
      entry.before === null,
      WITHOUT_BEFORE.includes(String(entry.action)),
      `${entry.action} has a state before`,
    );
  }
  return out;
}

/** The value of a name in JSON that was printed. */
const printedAs = (out: string, name: string) =>
  new RegExp(`"${name}": "([^"]+)"`).exec(out)?.[1] ?? assert.fail(name);

test('every command that changes something is audited, with the state before and after', async () => {
  const made = await changes(
    'merchant.create api-key.create float.top-up',
    ...['merchant', 'create', '--name', 'Kiosk', '--float', '1000', '--json'],
  );
  const id = printedAs(made, 'id');
  await changes('merchant.permit', 'merchant', 'permit', id, 'update-redemption');
  await changes('merchant.forbid', 'merchant', 'forbid', id, 'update-redemption');
  await changes('merchant.suspend', 'merchant', 'suspend', id);
  await changes('merchant.resume', 'merchant', 'resume', id);
  await changes('merchant.set', 'merchant', 'set', id, '--opaque');
  await changes('float.top-up', 'float', 'top-up', '--merchant', id, '--amount', '5');
  await changes('float.warn', 'float', 'warn', '--merchant', id, '--below', '7');
  await changes('product.create', 'product', 'create', '--code', 'AUDITED', '--name', 'Audited');
  await changes('product.set', 'product', 'set', 'AUDITED', '--max-quantity', '7');
  await changes('product.off-sale', 'product', 'off-sale', 'AUDITED');
  await changes('product.on-sale', 'product', 'on-sale', 'AUDITED');

  const key = printedAs(
    await changes('api-key.create', 'api-key', 'create', '--merchant', id, '--json'),
    'keyId',
  );
  await changes('api-key.rename', 'api-key', 'rename', key, '--name', 'Till 3');
  await changes('api-key.limit', 'api-key', 'limit', key, '--per-second', '5');
  await operator.testService.service.db.query(
    sql`
      insert into api_key_days (key_id, day, calls, guesses, blocked_at)
      values (${key}, (now() at time zone 'UTC')::date, 60, 60, now())`,
  );
  await changes('api-key.pardon', 'api-key', 'pardon', key);
  await changes('api-key.create api-key.rotate', 'api-key', 'rotate', key, '--overlap', '1h', '--json');
  await changes('api-key.revoke', 'api-key', 'revoke', key);

  const token = printedAs(
    await changes('token.create', 'token', 'create', '--role', 'support', '--json'),
    'id',
  );
  await changes('token.revoke', 'token', 'revoke', token);
  await changes('backup.note', 'backup', 'note', '--place', '/var/lib/pgbackrest');

  await changesOfVouchers(id);
  await changesOfWebhooks(id);
});

async function changesOfVouchers(id: string): Promise<void> {
  const order = ['batch', 'generate', '--merchant', id, '--value', '5', '--json', '--quantity'];
  const batch = printedAs(await changes('batch.generate', ...order, '3'), 'transactionId');
  await changes(
    'batch.export',
    'batch',
    'export',
    batch,
    '--format',
    'csv',
    '--out',
    join(folder, 'codes.csv'),
  );
  await changes(
    'batch.cancel',
    'batch',
    'cancel',
    printedAs(await changes('batch.generate', ...order, '12'), 'transactionId'),
  );
  const [{ serial }] = (await operator.testService.service.db.query<{ serial: bigint }>(
    sql`select min(serial_number) as serial from vouchers`,
  )) as [{ serial: bigint }];
  for (const action of ['block', 'unblock', 'unlock-pin'])
    await changes(`voucher.${action}`, 'voucher', action, `${serial}`);
  await changes('voucher.extend', 'voucher', 'extend', `${serial}`, '--expiry', '2099-01-01');
  await changes('voucher.replace', 'voucher', 'replace', `${serial}`);
  const card = ['--format', 'csv', '--out', join(folder, 'card.csv')];
  await changes('voucher.export', 'voucher', 'export', `${serial}`, ...card);
}

async function changesOfWebhooks(id: string): Promise<void> {
  const url = 'http://127.0.0.1:9/hook';
  const hook = printedAs(
    await changes('webhook.add', 'webhook', 'add', '--merchant', id, '--url', url, '--json'),
    'id',
  );
  await changes('webhook.test', 'webhook', 'test', hook);
  const [{ event }] = (await operator.testService.service.db.query<{ event: string }>(
    sql`select event_id::text as event from webhook_deliveries`,
  )) as [{ event: string }];
  await changes('webhook.resend', 'webhook', 'resend', hook, '--event', event);
  await changes('webhook.rotate', 'webhook', 'rotate', hook, '--json');
  await changes('webhook.enable', 'webhook', 'enable', hook);
  await changes('webhook.remove', 'webhook', 'remove', hook);
}

test('every command that changes the key ring is audited', async () => {
  const [old = ''] = operator.testService.keys.split(':');
  const { key } = await operator.json`keyring make`;
  ring = Operator.at(operator.testService, { SCRIP_KEYS: `${key},${operator.testService.keys}` });
  by = ring;
  await changes('keyring.rotate keyring.retire', 'keyring', 'rotate', '--json');
  await changes('keyring.drop', 'keyring', 'drop', old, '--json');
  by = operator;
  printed.push(key.slice(key.indexOf(':') + 1));
});

test('every action is that of an operation, or one of the others that the page of the audit lists', async () => {
  for (const source of await readdir(SOURCES, { recursive: true })) {
    if (!source.endsWith('.ts')) continue;
    const text = await readFile(new URL(source, SOURCES), 'utf8');
    for (const [, action] of text.matchAll(/\baction: '([a-z-]+\.[a-z0-9-]+)'/g)) seen.add(action);
  }
  const operations = [...OPERATIONS, ...PORTAL_OPERATIONS];
  const known = new Set<unknown>([...operations.map(({ audit }) => audit), ...Object.keys(OTHER_ACTIONS)]);
  assert.deepEqual(
    [...seen].filter((action) => !known.has(action)),
    [],
  );
});

test('no secret, code or PIN that a command printed or wrote is in the audit', async () => {
  const [{ text }] = (await operator.testService.service.db.query<{ text: string }>(
    sql`select string_agg(a::text, E'\n') as text from audit a`,
  )) as [{ text: string }];
  const secrets = printed.flatMap((out) =>
    [...out.matchAll(/"(?:secret|key)": "([^"]+)"/g)].map(([, secret]) => secret as string),
  );
  const written = await Promise.all(
    ['codes.csv', 'card.csv'].map((name) => readFile(join(folder, name), 'utf8')),
  );
  const codes = written.join('').match(/\b\d{12}\b/g) ?? [];
  assert.ok(secrets.length >= 5 && codes.length === 4);
  for (const secret of [...secrets, ...codes, printed.at(-1) as string]) assert.ok(!text.includes(secret));
  assert.match((await ring.run`audit verify`).out, /^intact: /);
});
