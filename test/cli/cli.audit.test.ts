import assert from 'node:assert/strict';
import { userInfo } from 'node:os';
import { test } from 'node:test';
import { sql } from '../../src/db/sql.ts';
import { Operator } from '../support/operator.ts';
import { asOwner } from '../support/owner.ts';
import { typed } from '../support/scrip.ts';

const operator = Operator.ofTests();

test('scrip audit list shows the actor and the reason of a change', async () => {
  const { id } = await operator.json`merchant create --name Kiosk --by anna --reason ${'a new shop'}`;
  await operator.json`--by bert float top-up --merchant ${id} --amount 9.50`;
  assert.equal((await operator.run`merchant suspend ${id}`).status, 0);
  const listed = (await operator.json`audit list`).map(
    ({ actor, action, reason }: Record<string, unknown>) => [actor, action, reason],
  );
  assert.deepEqual(listed, [
    [userInfo().username, 'merchant.suspend', null],
    ['bert', 'float.top-up', null],
    ['anna', 'api-key.create', 'a new shop'],
    ['anna', 'merchant.create', 'a new shop'],
  ]);
  const [topUp] = (await operator.json`audit list --subject ${`merchant ${id}`} --limit 2`).slice(1);
  const { before: old, after: now } = topUp;
  const shown = [old.balance, now.balance, now.amount];
  assert.deepEqual(shown, ['USD 0.00', 'USD 9.50', 'USD 9.50']);
  for (const unreadable of [
    'two\nlines',
    'anna\u009b2J',
    'an\u202ena',
    'an\u200bna',
    'an\u200dna',
    'two\u2028lines',
  ]) {
    await operator.fails(/--by takes one line/, ...typed`merchant resume ${id} --by ${unreadable}`);
  }
  assert.equal((await operator.run`merchant resume ${id} --by ${'نمی\u200cدانم 😀 Zoë'}`).status, 0);
  await operator.fails(/--limit takes/, ...typed`audit list --limit 0`);
});

test('scrip audit verify ends with status 1 if the chain is broken, and names the entry', async () => {
  const head = await operator.json`audit head`;
  assert.equal(head.sequence, '5');
  const whole = await operator.json`audit verify --head ${head.hash}`;
  assert.deepEqual(whole, { ok: true, entries: 5, head: head.hash, broken: null });
  assert.match((await operator.run`audit verify`).out, /^intact: 5 entries/);

  await asOwner(operator.testService.url, sql`update scrip.audit set reason = 'because' where sequence = 2`);
  const { status, out } = await operator.run`audit verify --json`;
  assert.equal(status, 1);
  assert.deepEqual(JSON.parse(out).broken, { sequence: '2', problem: 'it was changed' });
  const verified = await operator.run`audit verify`;
  assert.deepEqual([verified.status, verified.out], [1, 'BROKEN after 1 entry: entry 2: it was changed\n']);
  await operator.fails(/64 hexadecimal digits/, ...typed`audit verify --head abc`);
});
