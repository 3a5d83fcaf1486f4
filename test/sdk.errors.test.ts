import assert from 'node:assert/strict';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, it, type TestContext } from 'node:test';
import { inspect } from 'node:util';
import { addLanguage, type Retry, Scrip, ScripError, STATUS_CODES } from '../sdk/src/index.ts';
import { currencyDecimals } from '../sdk/src/money.ts';
import { decimalsOf } from '../src/money.ts';

/** What goes wrong with the merchant's client, and what is told of it, against servers that answer whatever a test wants. */

const CODE = '482913057641';
const PIN = '0731';
const SECRET = 'canary-of-the-secret';
const voucher = { code: CODE, pin: PIN };

type Answer = (request: IncomingMessage, response: ServerResponse, body: string, requests: number) => void;

async function answering(t: TestContext, answer: Answer) {
  let requests = 0;
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    answer(request, response, body, ++requests);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const retries: Retry[] = [];
  const options = { baseUrl, keyId: 'key', secret: SECRET, maxAttempts: 3, retryDelayMs: 1, attemptTimeoutMs: 2_000 };
  const onRetry = (retry: Retry) => retries.push(retry);
  return {
    a: new Scrip({ ...options, variant: 'a', onRetry }),
    b: new Scrip({ ...options, variant: 'b', onRetry }),
    retries,
    count: () => requests,
  };
}

async function failure(call: Promise<unknown>): Promise<ScripError> {
  const error = await call.then(
    () => assert.fail('the call went well'),
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof ScripError, String(error));
  return error;
}

const json = (response: ServerResponse, status: number, body: unknown, headers = {}) =>
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));

describe('an error', () => {
  it('tells the code, its name, the request and the fields', async (t) => {
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

  it('is made of every status code, also of one that is not known yet', async (t) => {
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
      // What is not found, and every other refusal, is not asked again.
      assert.equal(count() - before, error.isRetryable ? 3 : 1, statusCode);
      for (const language of ['en', 'fr', 'pt', 'es', 'de']) assert.ok(error.userMessage(language).length > 10);
    }
  });

  it('speaks the language of the customer', async (t) => {
    const { b } = await answering(t, (_request, response) =>
      json(response, 200, { statusCode: '51', message: 'Insufficient balance', data: null }),
    );
    const error = await failure(b.redeem({ ...voucher, amount: 1 }));
    const told = ['en', 'fr', 'pt', 'es', 'de'].map((language) => error.userMessage(language));
    assert.equal(new Set(told).size, 5);
    assert.equal(error.userMessage('pt-BR'), error.userMessage('pt'));
    assert.equal(error.userMessage('tlh'), error.userMessage());
    addLanguage('nl', { insufficientBalance: 'Het saldo is te laag.' });
    assert.equal(error.userMessage('nl_BE'), 'Het saldo is te laag.');
    addLanguage('pt-BR', { insufficientBalance: 'O saldo não é suficiente.' });
    assert.equal(error.userMessage('pt-BR'), 'O saldo não é suficiente.');
    assert.notEqual(error.userMessage('pt'), 'O saldo não é suficiente.');
  });
});

describe('a try', () => {
  it('is made again under the same reference, and waits as long as it is told', async (t) => {
    const bodies: { reference: string }[] = [];
    const { b, retries } = await answering(t, (_request, response, body, requests) => {
      bodies.push(JSON.parse(body));
      if (requests === 1) json(response, 503, { statusCode: '91', message: '', data: null }, { 'retry-after': '1' });
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

  it('is not waited for beyond the deadline', async (t) => {
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
  });

  it('never follows a redirect with a code and a PIN', async (t) => {
    const seen: string[] = [];
    const other = await answering(t, (request, response) => {
      seen.push(request.url ?? '');
      response.end();
    });
    void other;
    const { a } = await answering(t, (_request, response) =>
      response.writeHead(307, { location: 'http://127.0.0.1:9/elsewhere' }).end(),
    );
    const error = await failure(a.redeem({ ...voucher, amount: 1 }));
    assert.deepEqual([error.code, error.httpStatus, error.isRetryable], ['invalidResponse', 307, false]);
    assert.deepEqual(seen, []);
  });

  it('takes no answer for its own that tells of something else', async (t) => {
    const transaction = {
      transactionId: 't',
      transactionType: 'REDEMPTION',
      amount: 1,
      timestamp: '2026-01-01T00:00:00.000Z',
      reference: 'x',
      voucherCode: '4829****7641',
      serialNumber: '1',
    };
    for (const wrong of [{ reference: 'y' }, { amount: 2 }, { transactionType: 'ACTIVATION' }, { timestamp: 5 }]) {
      const { b } = await answering(t, (_request, response) =>
        json(response, 200, { statusCode: '00', message: '', data: { ...transaction, ...wrong } }),
      );
      assert.equal((await failure(b.redeem({ ...voucher, amount: 1, reference: 'x' }))).code, 'unknownOutcome');
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

describe('an argument', () => {
  it('that cannot be right is refused before anything is sent', async (t) => {
    const { a, b, count } = await answering(t, (_request, response) => response.end());
    const loose = (value: unknown) => value as never;
    const refused: [string, Promise<unknown>][] = [
      ...[Number.NaN, Number.POSITIVE_INFINITY, -1, 0, 0.1 + 0.2, 1e21, 1e-7, 10.12345, 2 ** 53].map(
        (amount): [string, Promise<unknown>] => ['13', a.redeem({ ...voucher, amount })],
      ),
      ['30', a.redeem({ ...voucher, amount: loose('10') })],
      ['30', a.redeem({ ...voucher, amount: loose(undefined) })],
      ['30', a.redeem(loose(undefined))],
      ['30', b.redeem({ code: CODE, amount: 1 })],
      ['30', b.redeem({ code: CODE + PIN, pin: PIN, amount: 1 })],
      ['30', b.balance({ code: '48291305764', pin: PIN })],
      ['30', b.balance({ code: CODE, pin: loose(731) })],
      ['18', a.redeem({ ...voucher, amount: 1, reference: 'NEW-x' })],
      ['18', a.redeem({ ...voucher, amount: 1, reference: '' })],
      ['18', a.redeem({ ...voucher, amount: 1, reference: 'a\nb' })],
      ['18', a.redeem({ ...voucher, amount: 1, reference: '\ud800' })],
      ['18', a.redeem({ ...voucher, amount: 1, reference: 'x'.repeat(101) })],
      ['18', b.transaction('..')],
      ['18', b.transaction('.')],
      // Forgetting the amount must not give the money back.
      ['30', a.updateRedemption(loose({ reference: 'x' }))],
      ['30', a.updateRedemption(loose({ reference: 'x', amountUsed: null }))],
      ['13', a.updateRedemption({ reference: 'x', amountUsed: -1 })],
      ['16', b.generate({ quantity: 1.5 })],
      ['30', a.generate(loose({ quantity: 1, value: 1 }))],
      ['30', a.generate(loose({ quantity: 1, productCode: 'DEFAULT' }))],
      ['17', b.generate({ quantity: 1, expiryDate: new Date(Number.NaN) })],
      ['30', b.activate({ serialNumber: 'x' })],
    ];
    const calls = refused.map(([statusCode, call]) => [statusCode, failure(call)] as const);
    for (const [at, [statusCode, call]] of calls.entries()) {
      const error = await call;
      assert.deepEqual([error.statusCode, error.httpStatus], [statusCode, null], `refused[${at}]: ${error.message}`);
    }
    assert.equal(count(), 0);
  });

  it('is held to the decimals of the currency, where it is told', async () => {
    const options = { baseUrl: 'http://127.0.0.1:9', keyId: 'k', secret: 's', variant: 'a' } as const;
    const yen = new Scrip({ ...options, currency: 'JPY' });
    assert.equal((await failure(yen.redeem({ ...voucher, amount: 10.5 }))).code, 'invalidAmount');
    for (const currency of Intl.supportedValuesOf('currency')) {
      assert.equal(currencyDecimals(currency), decimalsOf(currency), currency);
    }
  });

  it('that the variant lacks does not compile, and is refused', async () => {
    const options = { baseUrl: 'http://127.0.0.1:9', keyId: 'k', secret: 's' };
    const a = new Scrip({ ...options, variant: 'a' });
    const b = new Scrip({ ...options, variant: 'b' });
    for (const call of [
      // @ts-expect-error: variant B has no updates.
      () => b.updateRedemption({ reference: 'x', amountUsed: 1 }),
      // @ts-expect-error: nor reversals.
      () => b.reverseRedemption('x'),
      // @ts-expect-error: nor their details.
      () => b.redemptionUpdate('x'),
      // @ts-expect-error: variant B generates with the merchant's product.
      () => b.generate({ quantity: 1, productCode: 'DEFAULT' }),
      // @ts-expect-error: variant B activates by serial number.
      () => b.activate({ code: CODE, pin: PIN }),
      // @ts-expect-error: variant A by code and PIN.
      () => a.activate({ serialNumber: 1 }),
      // @ts-expect-error: variant A takes no expiry date.
      () => a.generate({ productCode: 'DEFAULT', quantity: 1, value: 1, expiryDate: new Date() }),
    ]) {
      const error = await failure(call());
      assert.equal(error.code, 'unsupportedByVariant', error.message);
      assert.match(error.message, /variant [ab] has no/);
    }
    // @ts-expect-error: the amount of an update has no default.
    await assert.rejects(a.updateRedemption({ reference: 'x' }), ScripError);
    // @ts-expect-error: there are two variants.
    assert.throws(() => new Scrip({ ...options, variant: 'c' }), TypeError);
  });
});

describe('codes, PINs and secrets', () => {
  const found = (value: unknown) => {
    const texts = [inspect(value, { depth: 9, showHidden: true, getters: true }), JSON.stringify(value), String(value)];
    return texts.some((text) =>
      [CODE, `${CODE}${PIN}`, ` ${PIN}`, SECRET, btoa(`key:${SECRET}`)].some((each) => text.includes(each)),
    );
  };

  it('are found by this test where they are', () => {
    assert.ok(found(new Error(`no voucher ${CODE}`)) && found({ pin: ` ${PIN}` }) && found([SECRET]));
  });

  it('are in no error, whatever a server answers', async (t) => {
    const echo = (request: IncomingMessage, body: string) =>
      `${request.headers.authorization} ${body} ${CODE}${PIN} ${PIN} ${SECRET}`;
    const answers: Answer[] = [
      (request, response, body) =>
        json(response, 400, {
          statusCode: '30',
          message: echo(request, body),
          data: body,
          errors: [{ field: PIN, rule: CODE, message: echo(request, body) }],
        }),
      (request, response, body) =>
        json(
          response,
          200,
          { statusCode: '55', message: echo(request, body), data: JSON.parse(body || '{}') },
          { 'x-request-id': CODE },
        ),
      (request, response, body) => json(response, 503, { statusCode: '91', message: echo(request, body) }),
      (request, response, body) => json(response, 401, { message: echo(request, body) }),
      (request, response, body) => response.end(echo(request, body)),
      (request, response, body) => response.writeHead(500).end(echo(request, body)),
      (request, response, body) => json(response, 200, { statusCode: '00', message: '', data: echo(request, body) }),
      (request, response, body) =>
        json(response, 200, { statusCode: '00', message: '', data: { status: echo(request, body), reference: body } }),
      (_request, response) => response.destroy(),
      (_request, response, body) => {
        response.writeHead(200, { 'content-length': 5000 }).write(`{"data":"${body}`);
        setImmediate(() => response.destroy());
      },
    ];
    for (const answer of answers) {
      const { a, b, retries } = await answering(t, answer);
      for (const call of [
        a.redeem({ ...voucher, amount: 1 }),
        b.redeem({ code: CODE + PIN, amount: 1 }),
        a.activate(voucher),
        b.balance(voucher),
        a.balance(voucher),
        a.download('x'),
        a.downloadVouchers('x').next(),
        a.transactions(),
        a.redemptionUpdate('x'),
        a.reverseRedemption('x'),
      ].map(failure)) {
        const error = await call;
        assert.ok(!found(error), inspect(error));
      }
      assert.ok(!found(retries));
    }
  });

  it('are in no error of a wrong argument, nor of a fetch that tells everything', async () => {
    const fetch = (async (url: unknown, init: unknown) => {
      throw Object.assign(new Error(`failed: ${JSON.stringify(init)}`), { url, init, cause: { code: CODE, init } });
    }) as typeof globalThis.fetch;
    const options = {
      baseUrl: 'http://127.0.0.1:9',
      keyId: 'key',
      secret: SECRET,
      fetch,
      maxAttempts: 2,
      retryDelayMs: 1,
    };
    const scrip = new Scrip({ ...options, variant: 'a' });
    for (const call of [
      scrip.redeem({ ...voucher, amount: 1 }),
      scrip.balance({ code: `${CODE}${PIN}1` }),
      scrip.balance({ code: CODE, pin: `${PIN}1` }),
      scrip.balance({ code: CODE + PIN, pin: PIN }),
      scrip.redeem({ ...voucher, amount: -1 }),
    ].map(failure)) {
      assert.ok(!found(await call));
    }
    for (const wrong of [
      { baseUrl: `http://key:${SECRET}@127.0.0.1` },
      { keyId: '', secret: SECRET },
      { secret: `${SECRET}\n` },
    ]) {
      assert.throws(
        () => new Scrip({ ...options, variant: 'a', ...wrong }),
        (error) => error instanceof TypeError && !found(error),
      );
    }
  });

  it('are not in the client, however it is printed', () => {
    const scrip = new Scrip({ baseUrl: 'https://vouchers.example.com/', keyId: 'key', secret: SECRET, variant: 'a' });
    assert.ok(!found(scrip));
    assert.ok(!found({ scrip, list: [scrip] }));
    assert.equal(inspect(scrip, { customInspect: false, depth: 9 }).includes(SECRET), false);
    assert.equal(String(scrip), 'Scrip(https://vouchers.example.com, variant a)');
    assert.deepEqual(Object.keys(scrip), ['variant']);
  });
});
