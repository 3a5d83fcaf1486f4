import assert from 'node:assert/strict';
import { test } from 'node:test';
import { exportBatch, listExports } from '../../src/batches/export.ts';
import { generate } from '../../src/batches/generate.ts';
import { OPERATIONS } from '../../src/batches/order-sheets.ts';
import { describeCards, drawSheets } from '../../src/batches/sheets.ts';
import { sql } from '../../src/db/sql.ts';
import { actFor } from '../../src/merchants/merchants.ts';
import type { Caller } from '../../src/operation.ts';
import { scene } from '../support/approvals.ts';
import { enrolled, signIn } from '../support/browser.ts';
import { asOperator } from '../support/harness.ts';
import { vouchersOf } from '../support/operator.ts';
import { readPermissions, readSheet } from '../support/print.ts';

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

/** In the quality of the printer. */
const PRINTING = 0x800;

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
  const permissions = await readPermissions(bytes, passphrase);
  assert.ok(permissions === null || permissions.includes(PRINTING), 'it may be printed');
  const pages = await readSheet(bytes, passphrase);
  assert.deepEqual(pages.flatMap(({ qr }) => qr).sort(), vouchers.map(({ code, pin }) => code + pin).sort());
  const [recorded] = await listExports(listening.service.db, batch.id);
  assert.deepEqual(
    [recorded?.state, recorded?.by, recorded?.reason, recorded?.vouchers],
    ['complete', 'ada@example.com', 'spring print run', 10],
  );
});

test('the language of the cards is that of the order', async (t) => {
  const { ada, bob, batch } = await printable(t, 1);
  const path = `/batches/${batch.transactionId}/sheets`;
  assert.equal((await ada.post(path, { language: 'fr' })).body.errors[0].field, 'language');
  const languages = [{ language: 'de' }, { language: 'en' }, {}];
  for (const order of languages) {
    const { effect, id } = (await ada.post(path, order)).body.approval;
    assert.equal(effect[0].after.language, order.language ?? 'en');
    const { output } = (await bob.post(`/approvals/${id}/approve`, {})).body;
    const { bytes } = await ada.post(`/sheets/${output.id}/download`);
    const [page] = await readSheet(bytes, output.passphrase);
    assert.match(page?.text ?? '', order.language === 'de' ? /GÜLTIG BIS/ : /VALID UNTIL/);
  }
  const listed: { language: string }[] = (await ada.get(path)).body.items;
  assert.deepEqual(
    listed.map(({ language }) => language),
    ['en', 'en', 'de'],
  );
});

test('sheets can be downloaded for a day by the person who ordered them, with a second factor', async (t) => {
  const { listening, ada, bob, batch, people } = await printable(t);
  const proposed = await ada.post(`/batches/${batch.transactionId}/sheets`, {});
  const approved = await bob.post(`/approvals/${proposed.body.approval.id}/approve`, {});
  const download = `/sheets/${approved.body.output.id}/download`;
  const carol = await enrolled(listening, { email: 'carol@example.com', roles: ['operations'] });
  assert.equal((await carol.browser.post(download)).status, 404);
  const developer = await enrolled(listening, { email: 'dan@example.com', roles: ['developer'] });
  assert.equal((await developer.browser.post(download)).status, 403);
  listening.clock.advance(6 * 60_000);
  assert.equal((await ada.post(download)).body.code, 'step-up-required');
  listening.clock.advance(24 * 3_600_000);
  const later = await signIn(listening, people[0]);
  assert.equal((await later.post(download)).body.code, 'conflict');
});

/** A card that was replaced, and a person of support. */
async function lostCard(t: Parameters<typeof scene>[0]) {
  const people = await printable(t, 2);
  const support = await enrolled(people.listening, { email: 'eve@example.com', roles: ['support'] });
  const lost = people.vouchers[0]?.serialNumber;
  const path = `/vouchers/${lost}/card`;
  const order = (body: object = {}) => support.browser.post(path, { reason: 'case 81', ...body });
  const replace = (serial: unknown) => support.browser.post(`/vouchers/${serial}/replace`, {});
  return { ...people, eve: support.browser, lost, path, order, replace };
}

test('support orders the card that replaced a lost one, and downloads it sealed, once', async (t) => {
  const { listening, context, bob, batch, vouchers, eve, lost, path, order, replace } = await lostCard(t);
  assert.deepEqual([(await order()).status, (await order()).body.code], [409, 'conflict']);
  const { serialNumber } = (await replace(lost)).body;
  const proposed = await order();
  assert.equal(proposed.status, 202, proposed.text);
  const { id, effect } = proposed.body.approval;
  assert.equal(effect[0].subject, `voucher ${serialNumber}`);
  const { replaced, exportsBefore, worth } = effect[0].after;
  assert.deepEqual([replaced, exportsBefore, worth], [String(lost), 0, 'USD 5.00']);
  assert.equal((await eve.post(`/approvals/${id}/approve`, {})).status, 403);
  const approved = await bob.post(`/approvals/${id}/approve`, {});
  assert.equal(approved.status, 200, approved.text);
  const { id: sheets, passphrase } = approved.body.output;
  assert.deepEqual(
    (await eve.get(path)).body.items.map((each: { id: string; isMine: boolean }) => [each.id, each.isMine]),
    [[sheets, true]],
  );
  assert.deepEqual((await bob.get(`/batches/${batch.transactionId}/sheets`)).body.items, []);

  assert.equal((await bob.post(`/sheets/${sheets}/download`)).status, 404);
  const { status, bytes } = await eve.post(`/sheets/${sheets}/download`);
  assert.equal(status, 200);
  await assert.rejects(readSheet(bytes), /[Pp]assword/);
  const cards = (await readSheet(bytes, passphrase)).flatMap(({ qr }) => qr);
  const made = (await vouchersOf(context, 'spring')).find(
    (each) => String(each.serialNumber) === serialNumber,
  );
  assert.ok(made && !vouchers.some(({ code }) => code === made.code));
  assert.deepEqual(cards, [made.code + made.pin]);
  const again = await eve.post(`/sheets/${sheets}/download`);
  assert.deepEqual([again.status, again.body.code], [409, 'conflict']);

  const records = await listExports(listening.service.db, batch.id);
  assert.deepEqual(
    records.map((each) => [String(each.serialNumber), each.state, each.by, each.reason, each.vouchers]),
    [[serialNumber, 'complete', 'eve@example.com', 'case 81', 1]],
  );
  const { timeline } = (await eve.get(`/vouchers/${serialNumber}`)).body;
  const changes = timeline.filter(({ kind }: { kind: string }) => kind === 'change');
  assert.deepEqual(changes.map(({ what }: { what: string }) => what).sort(), [
    'sheets.order',
    'voucher.export',
  ]);
});

test('a card that was downloaded is ordered again with a reason, and each order is for one download', async (t) => {
  const { bob, eve, lost, order, replace } = await lostCard(t);
  const { serialNumber } = (await replace(lost)).body;
  const approved = async (body?: object) => {
    const proposed = await order(body);
    assert.equal(proposed.status, 202, proposed.text);
    return bob.post(`/approvals/${proposed.body.approval.id}/approve`, {});
  };
  const [first, second] = [await approved(), await approved()];
  const download = async ({ body }: typeof first) =>
    (await eve.post(`/sheets/${body.output.id}/download`)).status;
  assert.equal(await download(first), 200);
  assert.equal(
    await download(second),
    409,
    'the other order is void: its approver did not know of a download',
  );
  assert.equal((await order()).body.code, 'conflict');
  const unexplained = await order({ again: true, reason: null });
  assert.deepEqual([unexplained.status, unexplained.body.errors?.[0]?.field], [400, 'reason']);
  const third = await approved({ again: true });
  assert.equal(await download(third), 200);
  assert.equal(await download(third), 409);

  const last = await approved({ again: true });
  await replace(serialNumber);
  assert.equal(await download(last), 409, 'the card was replaced after it was ordered');
});

test('one file of a merchant is drawn at a time, and at most four of all', async (t) => {
  const { listening, ada, bob, batch } = await printable(t);
  const { service } = listening;
  const proposed = await ada.post(`/batches/${batch.transactionId}/sheets`, {});
  const approved = await bob.post(`/approvals/${proposed.body.approval.id}/approve`, {});
  const [sheets] = await service.db.query<{ id: number; ordered_by: number }>(
    sql`select id, ordered_by from batch_sheets`,
  );
  assert.equal(String(sheets?.id), approved.body.output.id);
  const caller = { ...asOperator(service), principal: { userId: sheets?.ordered_by } } as unknown as Caller;
  const download = OPERATIONS.find(({ name }) => name === 'sheets.download');
  const begin = async () => {
    const file = (await download?.run(caller, { id: String(sheets?.id) })) as {
      content: AsyncIterable<Buffer>;
    };
    return file.content[Symbol.asyncIterator]();
  };
  const first = await begin();
  await first.next();
  await assert.rejects((await begin()).next(), { code: 'too-many-requests', message: /of this merchant/ });
  const described = await describeCards(service, batch, 'DEFAULT');
  const drawing = (merchantId: string) =>
    drawSheets(service, { ...described, merchantId }, {}, (write) =>
      exportBatch(asOperator(service), batch, 'pdf', write),
    );
  const others = ['101', '102', '103'].map(drawing);
  for (const other of others) assert.equal((await other.next()).done, false);
  await assert.rejects(drawing('104').next(), { code: 'too-many-requests', message: /^other sheets/ });
  await first.return?.();
  const again = await begin();
  assert.equal((await again.next()).done, false);
  await Promise.all([again, ...others].map((each) => each.return?.()));
});

test('a download that is not read to its end is recorded as aborted', async (t) => {
  const { listening, batch } = await printable(t);
  const { service } = listening;
  const described = await describeCards(service, batch, 'DEFAULT');
  const sealed = { language: 'en', passphrase: 'pass' } as const;
  const pieces = drawSheets(service, described, sealed, (write) =>
    exportBatch(asOperator(service), batch, 'pdf', write),
  );
  for await (const piece of pieces) {
    assert.ok(piece.length > 0);
    break;
  }
  const [recorded] = await listExports(service.db, batch.id);
  assert.equal(recorded?.state, 'aborted');
});
