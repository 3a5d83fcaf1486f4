import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import { describe, it } from 'node:test';
import { inspect } from 'node:util';
import { Scrip } from '../../sdk/src/index.ts';
import { type Answer, answering, CODE, failure, json, PIN, SECRET, voucher } from '../support/sdk.server.ts';

/** Searches the errors of the client for codes, PINs and secrets. */

describe('codes, PINs and secrets', () => {
  const found = (value: unknown) => {
    const texts = [
      inspect(value, { depth: 9, showHidden: true, getters: true }),
      JSON.stringify(value),
      String(value),
    ];
    return texts.some((text) =>
      [CODE, `${CODE}${PIN}`, ` ${PIN}`, SECRET, btoa(`key:${SECRET}`)].some((each) => text.includes(each)),
    );
  };

  it('are found by the search of this test', () => {
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
      (request, response, body) =>
        json(response, 200, { statusCode: '00', message: '', data: echo(request, body) }),
      (request, response, body) =>
        json(response, 200, {
          statusCode: '00',
          message: '',
          data: { status: echo(request, body), reference: body },
        }),
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
      ].map((each: Promise<unknown>) => failure(each))) {
        const error = await call;
        assert.ok(!found(error), inspect(error));
      }
      assert.ok(!found(retries));
    }
  });

  it('are in no error of an invalid argument, or of a fetch that throws the request', async () => {
    const fetch = (async (url: unknown, init: unknown) => {
      throw Object.assign(new Error(`failed: ${JSON.stringify(init)}`), {
        url,
        init,
        cause: { code: CODE, init },
      });
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
    ].map((each: Promise<unknown>) => failure(each))) {
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
    const scrip = new Scrip({
      baseUrl: 'https://vouchers.example.com/',
      keyId: 'key',
      secret: SECRET,
      variant: 'a',
    });
    assert.ok(!found(scrip));
    assert.ok(!found({ scrip, list: [scrip] }));
    assert.equal(inspect(scrip, { customInspect: false, depth: 9 }).includes(SECRET), false);
    assert.equal(String(scrip), 'Scrip(https://vouchers.example.com, variant a)');
    assert.deepEqual(Object.keys(scrip), ['variant']);
  });
});
