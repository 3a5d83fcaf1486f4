import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { authenticate } from '../../src/api-keys/authenticate.ts';
import type { BatchExport } from '../../src/batches/export.ts';
import { exportBatch } from '../../src/batches/export.ts';
import { generate } from '../../src/batches/generate.ts';
import type { Context } from '../../src/context.ts';
import { sql } from '../../src/db/sql.ts';
import { merchants } from '../../src/merchants/merchants.ts';
import { asOperator } from '../support/harness.ts';
import { operatorApi } from '../support/operator.api.ts';
import { vouchersOf } from '../support/operator.ts';
import { ownerOf, waitForLocks } from '../support/owner.ts';
import { readSheet } from '../support/print.ts';

const api = operatorApi();
let context: Context;
let token: string;

before(async () => {
  const merchant = await api.testService.createMerchant();
  ({ context } = await authenticate(api.testService.service, merchant.authorization));
  token = await api.token(['owner'], merchant.id);
});

async function make(reference: string, quantity = 3) {
  const { batch } = await generate(context, { reference, quantity, value: 5 });
  const path = `/portal/v1/batches/${batch.transactionId}`;
  const as = { authorization: `Bearer ${token}` };
  return {
    batch,
    download: (body: object = {}, headers: object = {}) =>
      api.call('POST', `${path}/download`, { format: 'csv', ...body }, { ...as, ...headers }),
    exports: async (): Promise<BatchExport[]> =>
      (await api.call('GET', `${path}/exports`, undefined, as)).body.items,
    /** As it was answered, not as text. */
    bytes: async (body: object) => {
      const headers = { ...as, 'content-type': 'application/json' };
      const url = `${api.testService.baseUrl}${path}/download`;
      const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
      assert.equal(response.status, 200);
      return Buffer.from(await response.arrayBuffer());
    },
  };
}

describe('a download in the portal', () => {
  test('returns the codes and PINs as CSV, and no table of the service has them', async () => {
    const { batch, download } = await make('csv');
    const { status, headers, body } = await download({}, { 'idempotency-key': 'download-1' });
    assert.equal(status, 200);
    assert.equal(headers.get('content-type'), 'text/csv; charset=utf-8');
    const [, ...lines] = (body as string).trim().split('\r\n');
    const shown = lines.map((line) => line.split(',').slice(1, 3).join());
    const vouchers = await vouchersOf(context, 'csv');
    assert.deepEqual(
      shown,
      vouchers.map(({ code, pin }) => `"${code}","${pin}"`),
    );
    const rows = await api.testService.service.db.query<{ text: string }>(sql`
select coalesce(output, '') as text from operator_requests union all
select coalesce(before, '') || coalesce(after, '') from audit`);
    assert.ok(rows.length > 0);
    for (const { code } of vouchers)
      assert.ok(!rows.some(({ text }) => text.includes(code)), batch.reference);
  });

  test('is recorded with its caller and its reason, and happens once unless it is asked for again', async () => {
    const { batch, download, exports } = await make('once');
    assert.equal((await download()).status, 200);
    const [first] = await exports();
    assert.deepEqual(
      [first?.format, first?.madeBy, first?.state, first?.vouchers],
      ['csv', 'merchant', 'complete', 3],
    );
    assert.match(String(first?.by), /./);
    const refused = await download({ format: 'pdf' });
    assert.deepEqual([refused.status, refused.body.code], [409, 'conflict']);
    assert.ok(refused.body.detail.includes(`${first?.by} at ${first?.begunAt} (csv)`), refused.body.detail);
    const unexplained = await download({ again: true });
    assert.deepEqual([unexplained.status, unexplained.body.errors[0].field], [400, 'reason']);
    assert.equal((await download({ again: true, reason: 'the disk failed' })).status, 200);
    assert.deepEqual(
      (await exports()).map(({ reason }) => reason),
      ['the disk failed', null],
    );
    const { body } = await api.get(`/audit?subject=batch ${batch.transactionId}`);
    const audited = body.items.filter(({ action }: { action: string }) => action === 'batch.export');
    assert.deepEqual(
      audited.map(({ reason, after }: { reason: string; after: { format: string; vouchers: number } }) => [
        reason,
        after.format,
        after.vouchers,
      ]),
      [
        ['the disk failed', 'csv', 3],
        [null, 'csv', 3],
      ],
    );
  });

  test('happens once if two people ask at the same moment', async (t) => {
    const { download } = await make('twice');
    const { url } = api.testService;
    const owner = await ownerOf(t, url);
    // Both have begun before one of them can write its entry in the audit.
    await owner.query(sql`select pg_advisory_lock(7311990002)`);
    const both = Promise.all([download(), download()]);
    await waitForLocks(url, 2).finally(() => owner.query(sql`select pg_advisory_unlock(7311990002)`));
    assert.deepEqual((await both).map(({ status }) => status).sort(), [200, 409]);
  });

  test('returns sheets of cards, which a passphrase can seal', async () => {
    const { bytes, download } = await make('sheets');
    const passphrase = 'correct-horse-battery';
    const sealed = await bytes({ format: 'pdf', passphrase });
    await assert.rejects(readSheet(sealed), /[Pp]assword/);
    const printed = (await readSheet(sealed, passphrase)).flatMap(({ qr }) => qr).sort();
    const codes = (await vouchersOf(context, 'sheets')).map(({ code, pin }) => code + pin).sort();
    assert.deepEqual(printed, codes);
    const open = await bytes({ format: 'pdf', again: true, reason: 'without a seal' });
    assert.equal((await readSheet(open)).flatMap(({ qr }) => qr).length, 3);
    const useless = await download({ passphrase, again: true, reason: 'a table' });
    assert.deepEqual([useless.status, useless.body.errors[0].field], [400, 'passphrase']);
  });

  test('shows an export of the operator without its people, and counts it', async () => {
    const { batch, download, exports } = await make('printed');
    await exportBatch(asOperator(api.testService.service), batch, 'pdf', async (vouchers) => {
      for await (const page of vouchers) assert.equal(page.length, 3);
    });
    const [shown] = await exports();
    assert.deepEqual([shown?.by, shown?.reason, shown?.madeBy], [null, null, 'operator']);
    const { body } = await download();
    assert.match(body.detail, /was downloaded by the operator at .* \(pdf\)/);
  });

  test('needs a right to the codes, and a complete batch of the merchant', async () => {
    const { batch, download, exports } = await make('refused');
    const running = await make('running', 11);
    const early = await running.download();
    assert.equal(early.status, 409);
    assert.match(early.body.detail, /is PROCESSING: it can be exported once it is COMPLETED/);
    const as = async (roles: readonly string[], merchantId: number) => ({
      authorization: `Bearer ${await api.token(roles, merchantId)}`,
    });
    const { id } = context.merchant;
    assert.equal(
      (await download({}, await as(['cashier', 'developer', 'viewer', 'finance'], id))).status,
      403,
    );
    const other = await api.testService.createMerchant();
    const foreign = await download({}, await as(['owner'], other.id));
    assert.deepEqual(
      [foreign.status, foreign.body.detail],
      [404, `there is no batch ${batch.transactionId}`],
    );
    const caller = asOperator(api.testService.service) as never;
    for (const permission of ['download', 'generate'])
      await merchants.forbid.run(caller, { id: String(id), permission } as never);
    const forbidden = await download();
    assert.deepEqual([forbidden.status, forbidden.body.code], [409, '03']);
    assert.deepEqual(await exports(), []);
  });
});
