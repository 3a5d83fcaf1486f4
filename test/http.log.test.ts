import assert from 'node:assert/strict';
import { Writable } from 'node:stream';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { buildServer } from '../src/http/server.ts';
import { createLogger } from '../src/log.ts';
import { DIALECTS } from './dialects.ts';
import { Till, UNKNOWN } from './till.ts';

test('the access log shows the API key and the transaction id of a call', async (t) => {
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
    // A line is logged when the response has closed, and written a turn later.
    while (!lines.includes(`"requestId":"${answer.headers['x-request-id']}"`)) await turn();
    const line = JSON.parse(lines.trim().split('\n').at(-1) as string);
    assert.deepEqual([line.keyId, line.merchantId], [till.merchant.keyId, till.merchant.id]);
    return { data: answer.json().data, logged: line.transactionId };
  };
  for (const [index, dialect] of DIALECTS.entries()) {
    const generated = await ask(dialect.generate(`order-${index}`, 1, 25));
    assert.ok(generated.logged);
    assert.equal(generated.logged, generated.data.transactionId);
    const sold = await ask(dialect.redeem(generated.data.vouchers[0], 5, `sale-${index}`));
    assert.ok(sold.logged);
    assert.equal(sold.logged, sold.data.transactionId);
    const update = { method: 'POST', path: '/merchant-client/v2/redemptions/update' } as const;
    const updated = await ask({ ...update, body: { reference: `sale-${index}`, amountUsed: 3 } });
    assert.ok(updated.logged);
    assert.equal(updated.logged, updated.data.cancellationTransaction.transactionId);
    assert.equal((await ask(dialect.balance(UNKNOWN))).logged, undefined);
  }
  assert.ok(!lines.includes('sale-0') && !lines.includes('order-0'));
});
