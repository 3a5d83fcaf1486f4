import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { addLanguage, STATUS_CODES } from '../../sdk/src/index.ts';
import { answering, failure, json, voucher } from '../support/sdk.server.ts';
import { standIn } from '../support/stand-in.ts';

/** The errors of the client, and its retries. */

describe('an error', () => {
  it('has the status code, its name, the request ID and the fields', async (t) => {
    const errors = [{ field: 'amount', rule: 'type', message: 'must be a number' }];
    const { a } = await answering(t, (_request, response) =>
      json(
        response,
        400,
        { statusCode: '30', message: 'Invalid request', data: null, errors },
        { 'x-request-id': 'r-1' },
      ),
    );
    const error = await failure(a.redeem({ ...voucher, amount: 1, reference: 'x' }));
    const { operation, code, statusCode, httpStatus, requestId, reference, fieldErrors, isRetryable } = error;
    assert.deepEqual(
      [operation, code, statusCode, httpStatus, requestId, reference, fieldErrors, isRetryable],
      ['redeem', 'invalidRequest', '30', 400, 'r-1', 'x', errors, false],
    );
    assert.match(error.message, /redeem: Invalid request \(30\)/);
    assert.equal(JSON.parse(JSON.stringify(error)).requestId, 'r-1');
  });

  it('exists for every status code, even for an unknown one', async (t) => {
    let next = '';
    const { b, count } = await answering(t, (_request, response) =>
      json(response, 200, { statusCode: next, message: 'Words', data: null }),
    );
    for (const statusCode of [...STATUS_CODES, '89']) {
      next = statusCode;
      const before = count();
      const error = await failure(b.transaction('x'));
      assert.equal(error.statusCode, statusCode);
      assert.equal(error.code === 'unknownStatus', statusCode === '89');
      assert.equal(error.isRetryable, ['91', '96', '97'].includes(statusCode), statusCode);
      // A refusal is not retried.
      assert.equal(count() - before, error.isRetryable ? 3 : 1, statusCode);
      for (const language of ['en', 'fr', 'pt', 'es', 'de'])
        assert.ok(error.userMessage(language).length > 10);
    }
  });

  it('has a message in the language of the customer', async (t) => {
    const { b } = await answering(t, (_request, response) =>
      json(response, 200, { statusCode: '51', message: 'Insufficient balance', data: null }),
    );
    const error = await failure(b.redeem({ ...voucher, amount: 1 }));
    const messages = ['en', 'fr', 'pt', 'es', 'de'].map((language) => error.userMessage(language));
    assert.equal(new Set(messages).size, 5);
    assert.equal(error.userMessage('pt-BR'), error.userMessage('pt'));
    assert.equal(error.userMessage('tlh'), error.userMessage());
    addLanguage('nl', { insufficientBalance: 'Het saldo is te laag.' });
    assert.equal(error.userMessage('nl_BE'), 'Het saldo is te laag.');
    addLanguage('pt-BR', { insufficientBalance: 'O saldo não é suficiente.' });
    assert.equal(error.userMessage('pt-BR'), 'O saldo não é suficiente.');
    assert.notEqual(error.userMessage('pt'), 'O saldo não é suficiente.');
    for (const none of ['', '-', 'constructor', null])
      assert.equal(error.userMessage(none), error.userMessage('en'));
  });
});

describe('a request', () => {
  it('is retried under the same reference, after the time in Retry-After', async (t) => {
    const bodies: { reference: string }[] = [];
    const { b, retries } = await answering(t, (_request, response, body, requests) => {
      bodies.push(JSON.parse(body));
      if (requests === 1)
        json(response, 503, { statusCode: '91', message: '', data: null }, { 'retry-after': '1' });
      else json(response, 200, { statusCode: '51', message: '', data: null });
    });
    const error = await failure(b.redeem({ ...voucher, amount: 1 }));
    assert.deepEqual(bodies[0], bodies[1]);
    assert.equal(bodies[0]?.reference, error.reference);
    const [retry] = retries;
    assert.ok(retry && retry.delayMs >= 1000);
    assert.deepEqual(
      [retries.length, retry.operation, retry.attempts, retry.error.code],
      [1, 'redeem', 1, 'serviceUnavailable'],
    );
    assert.equal(retry.reference, error.reference);
  });

  it('is reported if the answer is about another reference', async (t) => {
    const data = {
      transactionId: '01a22082-7443-7000-8073-d5193d1c7ea2',
      transactionType: 'REDEMPTION',
      amount: 1,
      timestamp: '2031-01-01T00:00:00.000Z',
      reference: 'order-2',
      voucherCode: '4829****7641',
      serialNumber: '1',
    };
    const { b } = await answering(t, (_request, response) =>
      json(response, 200, { statusCode: '00', message: 'Success', data }),
    );
    assert.equal((await b.transaction('order-2')).reference, 'order-2');
    const error = await failure(b.transaction('order-1'));
    assert.deepEqual([error.code, /another reference/.test(error.message)], ['invalidResponse', true]);
  });

  it('is not retried if Retry-After exceeds the deadline', async (t) => {
    const { b, count } = await answering(t, (_request, response) =>
      json(response, 429, { statusCode: '97', message: '', data: null }, { 'retry-after': '86400' }),
    );
    const error = await failure(b.redeem({ ...voucher, amount: 1 }));
    assert.deepEqual([error.code, error.retryAfterMs, count()], ['tooManyRequests', 86_400_000, 1]);
    const dated = await answering(t, (_request, response) =>
      response.writeHead(503, { 'retry-after': new Date(Date.now() + 3_600_000).toUTCString() }).end('busy'),
    );
    assert.equal((await failure(dated.b.transactions())).code, 'invalidResponse');
    assert.equal(dated.count(), 1);
    const endless = await answering(t, (_request, response) =>
      json(response, 429, { statusCode: '97', message: '', data: null }, { 'retry-after': '9'.repeat(30) }),
    );
    assert.equal((await failure(endless.b.transactions())).code, 'tooManyRequests');
    assert.equal(endless.count(), 1);
  });

  it('never follows a redirect with a code and a PIN', async (t) => {
    const seen: (string | undefined)[] = [];
    const { url: other } = await standIn(t, (request, response) => {
      seen.push(request.url);
      response.end();
    });
    const location = `${other}/elsewhere`;
    const { a } = await answering(t, (_request, response) => response.writeHead(307, { location }).end());
    const error = await failure(a.redeem({ ...voucher, amount: 1 }));
    assert.deepEqual([error.code, error.httpStatus, error.isRetryable], ['invalidResponse', 307, false]);
    assert.deepEqual(seen, []);
  });

  it('has an unknown outcome if the answer is about another transaction', async (t) => {
    const transaction = {
      transactionId: 't',
      transactionType: 'REDEMPTION',
      amount: 1,
      timestamp: '2026-01-01T00:00:00.000Z',
      reference: 'x',
      voucherCode: '4829****7641',
      serialNumber: '1',
    };
    for (const wrong of [
      { reference: 'y' },
      { amount: 2 },
      { transactionType: 'ACTIVATION' },
      { timestamp: 5 },
    ]) {
      const { b } = await answering(t, (_request, response) =>
        json(response, 200, { statusCode: '00', message: '', data: { ...transaction, ...wrong } }),
      );
      assert.equal(
        (await failure(b.redeem({ ...voucher, amount: 1, reference: 'x' }))).code,
        'unknownOutcome',
      );
    }
    const { b } = await answering(t, (_request, response) =>
      json(response, 200, { statusCode: '00', message: '', data: { ...transaction, serialNumber: 1 } }),
    );
    assert.equal((await b.redeem({ ...voucher, amount: 1, reference: 'x' })).serialNumber, '1');
  });

  it('accepts both shapes of an update', async (t) => {
    const transaction = {
      transactionId: 't',
      reference: 'x',
      voucherCode: '4829****7641',
      serialNumber: '1',
      note: 'n',
    };
    const original = { ...transaction, transactionType: 'REDEMPTION', amount: 10 };
    const cancellation = { ...transaction, transactionType: 'REDEMPTION_REVERSAL', amount: -10 };
    const replacement = { ...original, amount: 4 };
    for (const last of [replacement, null]) {
      const summary = { originalAmount: 10, newAmount: last ? 4 : 0, reference: 'x' };
      const named = {
        originalTransaction: original,
        cancellationTransaction: cancellation,
        newTransaction: last,
        summary,
      };
      const listed = { transactions: [original, cancellation, ...(last ? [last] : [])], summary };
      const results = [];
      for (const data of [named, listed]) {
        const { a } = await answering(t, (_request, response) =>
          json(response, 200, { statusCode: '00', message: '', data }),
        );
        results.push(await a.redemptionUpdate('x'));
      }
      assert.deepEqual(results[0], results[1]);
      assert.deepEqual(
        [results[0]?.originalTransaction.amount, results[0]?.newTransaction?.amount],
        [10, last?.amount],
      );
    }
  });
});
