import assert from 'node:assert/strict';
import { Writable } from 'node:stream';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { buildServer } from '../src/http/server.ts';
import { createLogger } from '../src/log.ts';
import { DIALECTS } from './dialects.ts';
import { Till, UNKNOWN } from './till.ts';

test('the access log tells which key did what stands in the journal, by the transaction id', async (t) => {
  const till = await Till.open(t);
  const { service } = till.testService;
  let lines = '';
  const destination = new Writable({
    write(chunk, _encoding, done) {
      lines += chunk;
      done();
    },
  });
  const app = buildServer({ ...service, log: createLogger('info', destination) });
  t.after(() => app.close());
  const ask = async ({ method, path, body }: ReturnType<(typeof DIALECTS)[number]['balance']>) => {
    const headers = { authorization: till.merchant.authorization };
    const answer = await app.inject({
      method: method as 'POST',
      url: path,
      headers,
      ...(body ? { payload: body as object } : {}),
    });
    // A line is written when the response has closed, and handed over a turn later.
    while (!lines.includes(`"requestId":"${answer.headers['x-request-id']}"`)) await turn();
    const line = JSON.parse(lines.trim().split('\n').at(-1) as string);
    assert.deepEqual([line.keyId, line.merchantId], [till.merchant.keyId, till.merchant.id]);
    return { data: answer.json().data, told: line.transactionId };
  };
  for (const [index, dialect] of DIALECTS.entries()) {
    const generated = await ask(dialect.generate(`order-${index}`, 1, 25));
    assert.ok(generated.told);
    assert.equal(generated.told, generated.data.transactionId);
    const sold = await ask(dialect.redeem(generated.data.vouchers[0], 5, `sale-${index}`));
    assert.ok(sold.told);
    assert.equal(sold.told, sold.data.transactionId);
    const asked = { method: 'POST', path: '/merchant-client/v2/redemptions/update' } as const;
    const updated = await ask({ ...asked, body: { reference: `sale-${index}`, amountUsed: 3 } });
    assert.ok(updated.told);
    assert.equal(updated.told, updated.data.cancellationTransaction.transactionId);
    assert.equal((await ask(dialect.balance(UNKNOWN))).told, undefined);
  }
  assert.ok(!lines.includes('sale-0') && !lines.includes('order-0'));
});
