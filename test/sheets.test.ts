import assert from 'node:assert/strict';
import { test } from 'node:test';
import { listExports } from '../src/batches/export.ts';
import { generate } from '../src/batches/generate.ts';
import { describeCards, sealedSheets } from '../src/batches/sheets.ts';
import { sql } from '../src/db/sql.ts';
import { actFor } from '../src/merchants/merchants.ts';
import type { Caller } from '../src/operator/operations.ts';
import { SHEETS } from '../src/operator/sheets.ts';
import { scene } from './approvals.ts';
import { enrolled, signIn } from './browser.ts';
import { asOperator } from './harness.ts';
import { vouchersOf } from './operator.ts';
import { readSheet } from './print.ts';

/** Two owners, and a complete batch. */
async function printable(t: Parameters<typeof scene>[0], quantity = 10) {
  const people = await scene(t);
  const { listening } = people;
  const context = await actFor(listening.service, Number(people.merchantId));
  assert.ok(context);
  const { batch } = await generate(context, { reference: 'spring', quantity, value: 5 });
  assert.equal(batch.status, 'COMPLETED');
  return { ...people, context, batch, vouchers: await vouchersOf(context, 'spring') };
}

test('sheets are encrypted: one person gets the file, and another one the passphrase', async (t) => {
  const { listening, ada, bob, batch, vouchers } = await printable(t);
  const path = `/batches/${batch.transactionId}/sheets`;
  const proposed = await ada.post(path, { reason: 'spring print run' });
  assert.equal(proposed.status, 202, proposed.text);
  const { id, effect } = proposed.body.approval;
  assert.deepEqual([effect[0].after.vouchers, effect[0].after.worth], [10, 'USD 50.00']);
  assert.deepEqual((await ada.get(path)).body.items, []);

  const approved = await bob.post(`/approvals/${id}/approve`, {}, { 'idempotency-key': 'approval-1' });
  assert.equal(approved.status, 200, approved.text);
  const { passphrase, id: sheets } = approved.body.output;
  assert.match(passphrase, /^([A-Z2-9]{5}-){3}[A-Z2-9]{5}$/);
  const again = await bob.post(`/approvals/${id}/approve`, {}, { 'idempotency-key': 'approval-1' });
  assert.deepEqual([again.status, again.body.output], [200, null]);
  const rows = await listening.service.db.query<{ text: string }>(sql`
select coalesce(output, '') || coalesce(effect, '') as text from approvals union all
select coalesce(output, '') from operator_requests union all
select coalesce(before, '') || coalesce(after, '') from audit`);
  assert.ok(
    rows.length > 2 && rows.every(({ text }) => !text.includes(passphrase)),
    'the passphrase is not stored',
  );

  const [listed] = (await ada.get(path)).body.items;
  assert.deepEqual([listed.id, listed.isMine], [sheets, true]);
  assert.equal((await bob.post(`/sheets/${sheets}/download`)).status, 404);
  const { status, headers, bytes } = await ada.post(`/sheets/${sheets}/download`);
  assert.deepEqual([status, headers.get('content-type')], [200, 'application/pdf']);
  await assert.rejects(readSheet(bytes), /[Pp]assword/);
  const pages = await readSheet(bytes, passphrase);
  assert.deepEqual(pages.flatMap(({ qr }) => qr).sort(), vouchers.map(({ code, pin }) => code + pin).sort());
  const [recorded] = await listExports(listening.service.db, batch.id);
  assert.deepEqual(
    [recorded?.state, recorded?.by, recorded?.reason, recorded?.vouchers],
    ['complete', 'ada@example.com', 'spring print run', 10],
  );
});

test('sheets can be downloaded for a day by the person who ordered them, with a second factor', async (t) => {
  const { listening, ada, bob, batch, people } = await printable(t);
  const proposed = await ada.post(`/batches/${batch.transactionId}/sheets`, {});
  const approved = await bob.post(`/approvals/${proposed.body.approval.id}/approve`, {});
  const download = `/sheets/${approved.body.output.id}/download`;
  const carol = await enrolled(listening, { email: 'carol@example.com', roles: ['operations'] });
  assert.equal((await carol.browser.post(download)).status, 404);
  const support = await enrolled(listening, { email: 'dan@example.com', roles: ['support'] });
  assert.equal((await support.browser.post(download)).status, 403);
  listening.clock.advance(6 * 60_000);
  assert.equal((await ada.post(download)).body.code, 'step-up-required');
  listening.clock.advance(24 * 3_600_000);
  const later = await signIn(listening, people[0]);
  assert.equal((await later.post(download)).body.code, 'conflict');
});

test('at most two downloads are drawn at the same time', async (t) => {
  const { listening, ada, bob, batch } = await printable(t);
  const { service } = listening;
  const proposed = await ada.post(`/batches/${batch.transactionId}/sheets`, {});
  const approved = await bob.post(`/approvals/${proposed.body.approval.id}/approve`, {});
  const [sheets] = await service.db.query<{ id: number; ordered_by: number }>(
    sql`select id, ordered_by from batch_sheets`,
  );
  assert.equal(String(sheets?.id), approved.body.output.id);
  const caller = { ...asOperator(service), principal: { userId: sheets?.ordered_by } } as unknown as Caller;
  const download = SHEETS.find(({ name }) => name === 'sheets.download');
  const begin = async () => {
    const file = (await download?.run(caller, { id: String(sheets?.id) })) as {
      content: AsyncIterable<Buffer>;
    };
    return file.content[Symbol.asyncIterator]();
  };
  const [first, second, third] = [await begin(), await begin(), await begin()];
  await Promise.all([first.next(), second.next()]);
  await assert.rejects(third.next(), { code: 'too-many-requests' });
  await first.return?.();
  const fourth = await begin();
  assert.equal((await fourth.next()).done, false);
  await Promise.all([second.return?.(), fourth.return?.()]);
});

test('a download that is not read to its end is recorded as aborted', async (t) => {
  const { listening, batch } = await printable(t);
  const { service } = listening;
  const described = await describeCards(service, batch, 'DEFAULT');
  for await (const piece of sealedSheets(asOperator(service), batch, described, 'pass')) {
    assert.ok(piece.length > 0);
    break;
  }
  const [recorded] = await listExports(service.db, batch.id);
  assert.equal(recorded?.state, 'aborted');
});
