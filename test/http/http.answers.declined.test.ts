import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { A, B, fresh, httpClient } from '../support/http.client.ts';

const { inject, call, newVoucher } = httpClient();

/** Headers without those that differ between two answers. */
function stable({ 'x-request-id': _id, date: _date, ...headers }: Record<string, unknown>) {
  return headers;
}

for (const dialect of [A, B]) {
  const { prefix, refused } = dialect;

  describe(`an invalid request to ${dialect.name}`, () => {
    test('with a wrong body is declined with a list of all its errors, without values', async () => {
      for (const body of ['null', '[]', '"x"', '7', 'true']) {
        const { status, body: answer } = await call('POST', `${prefix}/redeem`, body);
        assert.equal(status, refused);
        assert.equal(answer.statusCode, '30');
        assert.deepEqual(answer.errors, [{ field: 'body', rule: 'type', message: 'must be an object' }]);
      }
      const secret = '998877665544';
      const wrong = {
        code: `${secret}x`,
        voucherCode: `${secret}x`,
        pin: Number(secret),
        amount: secret,
        reference: [secret],
      };
      const { text, body } = await call('POST', `${prefix}/redeem`, { ...wrong, [secret]: 1 });
      assert.equal(body.statusCode, '30');
      assert.deepEqual(
        body.errors.map(({ field, rule }: { field: string; rule: string }) => `${field} ${rule}`).toSorted(),
        [
          'amount type',
          dialect === A ? 'code pattern' : 'voucherCode pattern',
          'pin type',
          'reference type',
        ].toSorted(),
      );
      assert.ok(!text.includes(secret));
    });

    test('that is not JSON is answered with HTTP 400', async () => {
      for (const body of ['', '{', '{"amount":01}']) {
        const answer = await call('POST', `${prefix}/redeem`, body);
        assert.equal(answer.status, 400);
        const errors = [{ field: 'body', rule: 'json', message: 'must be JSON in UTF-8' }];
        assert.deepEqual(answer.body, { statusCode: '30', message: 'Invalid request', data: null, errors });
      }
    });

    test('with a duplicate key is answered with HTTP 400, and has no effect', async () => {
      const voucher = await newVoucher();
      const reference = fresh();
      const text = JSON.stringify({ ...dialect.voucher(voucher), amount: 1, reference });
      for (const more of ['"amount":1', '"amount":2', '"\\u0061mount":2', '"x":{"y":[{"z":1,"z":1}]}']) {
        const answer = await call('POST', `${prefix}/redeem`, `${text.slice(0, -1)},${more}}`);
        assert.equal(answer.status, 400, more);
        const errors = [
          { field: 'body', rule: 'unique-keys', message: 'must not contain a key twice in one object' },
        ];
        assert.deepEqual(answer.body, { statusCode: '30', message: 'Invalid request', data: null, errors });
      }
      const spelled = await call('POST', `${prefix}/redeem`, text.replace('amount', '\\u0061mount'));
      assert.equal(spelled.body.statusCode, '00');
      assert.equal(spelled.headers['idempotent-replayed'], undefined);
    });

    test('by HEAD is answered with the status and headers of GET, and no body', async () => {
      const small = fresh();
      await call('POST', `${prefix}/vouchers`, dialect.generate(small, 2, 1));
      const paths = [
        `/vouchers/${small}`,
        `/vouchers/${fresh()}`,
        `/transactions/${fresh()}`,
        '/transactions',
      ];
      if (dialect === A) paths.push(`/redemptions/update/${fresh()}`);
      for (const path of [...paths.map((each) => prefix + each), '/healthz', '/readyz']) {
        const got = await inject({ url: path });
        const head = await inject({ method: 'HEAD', url: path });
        assert.equal(head.statusCode, got.statusCode, path);
        assert.deepEqual(stable(head.headers), stable(got.headers), path);
        assert.equal(head.body, '', path);
      }
      const refused = await inject({ method: 'HEAD', url: `${prefix}/transactions` }, {});
      assert.deepEqual([refused.statusCode, refused.headers['www-authenticate']], [401, 'Basic']);
    });

    test('with a number that a double cannot carry exactly is declined, not rounded', async () => {
      const voucher = JSON.stringify(dialect.voucher(await newVoucher())).slice(0, -1);
      for (const amount of [
        '10.00000000000000001',
        '1e999',
        '9007199254740993',
        '1e-999',
        '0',
        '-0.0',
        '-1',
        '0.001',
        '10.005',
        '1e15',
      ]) {
        const body = `${voucher},"reference":"${fresh()}","amount":${amount}}`;
        const { status, body: answer } = await call('POST', `${prefix}/redeem`, body);
        assert.equal(status, refused);
        const { errors, ...rest } = answer;
        assert.deepEqual(rest, { statusCode: '13', message: 'Invalid amount', data: null }, amount);
        assert.deepEqual([errors.length, errors[0].field, errors[0].rule], [1, 'amount', 'amount'], amount);
      }
      for (const quantity of ['1.5', '0', '-1', '1e999', '1.00000000000000001', '100001']) {
        const body = JSON.stringify(dialect.generate(fresh(), 7_654_321, 1)).replace('7654321', quantity);
        assert.equal((await call('POST', `${prefix}/vouchers`, body)).body.statusCode, '16', quantity);
      }
    });

    test('is declined with the name of the field, without its value', async () => {
      const value = dialect === A ? 'amount' : 'value';
      for (const [code, field, body] of [
        ['18', 'reference', dialect.generate('NEW-x', 1, 1)],
        ['16', 'quantity', dialect.generate(fresh(), 7_654_321, 1)],
        ['13', value, dialect.generate(fresh(), 1, 7654.321)],
      ] as const) {
        const { text, body: answer } = await call('POST', `${prefix}/vouchers`, body);
        assert.deepEqual(
          [answer.statusCode, answer.errors.map((each: { field: string }) => each.field)],
          [code, [field]],
        );
        assert.ok(!/NEW-x|7654/.test(text));
      }
      const { body } = await call('GET', `${prefix}/transactions/${'x'.repeat(101)}`);
      assert.deepEqual([body.statusCode, body.errors[0].field], ['18', 'reference']);
      const unknown = await call('POST', `${prefix}/redeem`, {
        ...dialect.voucher({ code: '999999999999', pin: '1234' } as never),
        amount: 1,
        reference: fresh(),
      });
      assert.deepEqual([unknown.body.statusCode, 'errors' in unknown.body], ['14', false]);
    });

    test('is declined with 18 for the form of a reference, and with 30 for its type', async () => {
      const voucher = dialect.voucher(await newVoucher());
      for (const reference of ['', 'x'.repeat(101), 'a\u0000b', 'NEW-x', 'CANCEL-x', '\ud800']) {
        const { body } = await call('POST', `${prefix}/redeem`, { ...voucher, amount: 1, reference });
        assert.equal(body.statusCode, '18', JSON.stringify(reference));
      }
      const { body } = await call('POST', `${prefix}/redeem`, { ...voucher, amount: 1, reference: 5 });
      assert.equal(body.statusCode, '30');
    });
  });
}
