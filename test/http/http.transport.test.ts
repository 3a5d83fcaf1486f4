import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { startBare } from '../support/http.bare.ts';

/** Invalid requests at transport level get the same answers below both prefixes, without a database. */
const DIALECTS = [
  {
    prefix: '/merchant-client/v2',
    posts: ['/vouchers', '/activate', '/balance', '/redeem', '/redemptions/update'],
  },
  { prefix: '/api/v2', posts: ['/vouchers', '/activate', '/balance', '/redeem'] },
];
const GETS = ['/vouchers/x', '/transactions/x', '/transactions'];
const CREDENTIALS = `Basic ${btoa('key_ThatNobodyHas123:secret')}`;

const UNSUPPORTED = { statusCode: '98', message: 'Unsupported request', data: null };
const unsupported = (field: string, rule: string, message: string) => ({
  ...UNSUPPORTED,
  errors: [{ field, rule, message }],
});
const TOO_LARGE = unsupported('body', 'maxLength', 'must be at most 64 KiB');
const UNAUTHORIZED = { statusCode: '01', message: 'Unauthorized', data: null };

let bare: Awaited<ReturnType<typeof startBare>>;
const call: typeof bare.call = (...request) => bare.call(...request);
const raw: typeof bare.raw = (...parts) => bare.raw(...parts);

before(async () => {
  bare = await startBare();
});

after(() => bare.stop());

for (const { prefix, posts } of DIALECTS) {
  const gets = prefix === '/api/v2' ? GETS : [...GETS, '/redemptions/update/x'];

  describe(`the prefix ${prefix}`, () => {
    for (const path of [
      '',
      '/',
      '/nothing',
      '/vouchers/',
      '/transactions/',
      '/vouchers/a/b',
      '//vouchers',
      '/Vouchers',
      '/transactions/%zz',
      '/transactions/%ff',
      '/%',
      '/redeem/x',
    ]) {
      test(`answers GET ${path || 'itself'} with 404`, async () => {
        const { status, body } = await call('GET', prefix + path);
        assert.equal(status, 404);
        assert.deepEqual(body, UNSUPPORTED);
      });
    }

    test('answers an unknown path before it checks credentials, media type or length', async () => {
      const headers = { 'content-type': 'text/xml' };
      const { status, body } = await call('POST', `${prefix}/nothing`, { headers, body: 'x'.repeat(70_000) });
      assert.equal(status, 404);
      assert.deepEqual(body, UNSUPPORTED);
    });

    for (const [paths, allowed, refused] of [
      [posts, 'POST', ['GET', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS', 'PROPFIND']],
      [gets, 'GET, HEAD', ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND']],
    ] as const) {
      for (const path of paths) {
        test(`allows only ${allowed} for ${path}`, async () => {
          for (const method of refused) {
            const { status, headers, body } = await call(method, prefix + path);
            assert.equal(status, 405, method);
            assert.equal(headers.get('allow'), allowed, method);
            assert.deepEqual(body, method === 'HEAD' ? undefined : UNSUPPORTED, method);
          }
        });
      }
    }

    for (const path of posts) {
      test(`refuses a body above 64 KiB for POST ${path}, with and without Content-Length`, async () => {
        const headers = { 'content-type': 'application/json' };
        const sized = await call('POST', prefix + path, { headers, body: 'x'.repeat(65_537) });
        assert.equal(sized.status, 413);
        assert.deepEqual(sized.body, TOO_LARGE);

        const chunk = `${(60_000).toString(16)}\r\n${'x'.repeat(60_000)}\r\n`;
        const chunked = await raw(
          `POST ${prefix}${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`,
          chunk,
          chunk,
          '0\r\n\r\n',
        );
        assert.equal(chunked.status, 413);
        assert.deepEqual(chunked.body, TOO_LARGE);
      });

      test(`names the allowed media types of POST ${path} before it checks the credentials`, async () => {
        const patch = 'application/json-patch+json or application/merge-patch+json, in UTF-8';
        const message =
          path === '/redemptions/update'
            ? `must be application/json or ${patch}`
            : 'must be application/json, in UTF-8';
        const wrongType = unsupported('Content-Type', 'media-type', message);
        for (const type of [
          'text/plain',
          'application/xml',
          'application/x-www-form-urlencoded',
          'application/json; charset=iso-8859-1',
          'json',
          '',
        ]) {
          const { status, body } = await call('POST', prefix + path, {
            headers: { 'content-type': type },
            body: '{}',
          });
          assert.equal(status, 415, type);
          assert.deepEqual(body, wrongType);
        }
        const untyped = await raw(
          `POST ${prefix}${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}`,
        );
        assert.deepEqual([untyped.status, untyped.body], [415, wrongType]);
        const headers = { 'content-type': 'application/json', 'content-encoding': 'gzip' };
        const encoded = await call('POST', prefix + path, { headers, body: '{}' });
        assert.equal(encoded.status, 415);
        assert.deepEqual(
          encoded.body,
          unsupported('Content-Encoding', 'identity', 'is not supported: send the body as it is'),
        );
      });

      test(`accepts patch media types only for updates: POST ${path}`, async () => {
        for (const type of ['application/json-patch+json', 'application/merge-patch+json']) {
          const { status } = await call('POST', prefix + path, {
            headers: { 'content-type': type },
            body: '{}',
          });
          assert.equal(status, path === '/redemptions/update' ? 401 : 415);
        }
      });

      test(`checks the credentials of POST ${path} before the body`, async () => {
        for (const type of [
          'application/json',
          'APPLICATION/JSON',
          'application/json; charset=UTF-8',
          'application/json;charset="utf-8"',
        ]) {
          const { status, headers, body } = await call('POST', prefix + path, {
            headers: { 'content-type': type },
            body: '{',
          });
          assert.equal(status, 401, type);
          assert.equal(headers.get('www-authenticate'), 'Basic');
          assert.deepEqual(body, UNAUTHORIZED);
        }
        assert.equal((await call('POST', prefix + path)).status, 401);
      });
    }

    for (const path of gets) {
      test(`requires credentials for GET ${path}`, async () => {
        for (const authorization of [
          '',
          'Basic',
          'Basic !!!',
          `Bearer ${btoa('a:b')}`,
          `Basic ${btoa('no colon')}`,
        ]) {
          const { status, headers, body } = await call('GET', prefix + path, { headers: { authorization } });
          assert.equal(status, 401, authorization);
          assert.equal(headers.get('www-authenticate'), 'Basic');
          assert.deepEqual(body, UNAUTHORIZED);
        }
      });

      test(`answers GET ${path} with 503 without a database`, async () => {
        const { status, headers, body } = await call('GET', `${prefix}${path}?a=%zz`, {
          headers: { authorization: CREDENTIALS },
        });
        assert.equal(status, 503);
        assert.match(headers.get('retry-after') ?? '', /^[1-9]\d*$/);
        assert.deepEqual(body, { statusCode: '91', message: 'Service unavailable', data: null });
      });
    }
  });
}

describe('the server', () => {
  test('answers an unknown path outside the prefixes in the same form', async () => {
    for (const path of ['/', '/api', '/api/v3/vouchers']) {
      const { status, body } = await call('GET', path);
      assert.equal(status, 404);
      assert.deepEqual(body, UNSUPPORTED);
    }
  });

  test('is alive but not ready without a database', async () => {
    assert.equal((await call('GET', '/healthz')).status, 200);
    const { status, body } = await call('GET', '/readyz');
    assert.equal(status, 503);
    assert.equal(body.statusCode, '91');
  });

  test('gives each request a new id, and ignores the one that was sent', async () => {
    const headers = { 'x-request-id': '482913057641' };
    const one = await call('GET', '/healthz', { headers });
    const two = await call('GET', '/healthz', { headers });
    assert.notEqual(one.headers.get('x-request-id'), two.headers.get('x-request-id'));
    assert.doesNotMatch(one.headers.get('x-request-id') ?? '', /482913057641/);
  });

  for (const [name, status, text] of [
    ['bytes that are not HTTP', 400, 'NONSENSE\r\n\r\n'],
    ['an invalid header', 400, 'GET /api/v2/transactions HTTP/1.1\r\nHost: x\r\nno header\r\n\r\n'],
    [
      'two values of Content-Length',
      400,
      'POST /api/v2/redeem HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}',
    ],
    ['too long a path', 431, `GET /api/v2/transactions/${'x'.repeat(20_000)} HTTP/1.1\r\nHost: x\r\n\r\n`],
    ['a request without a version', 400, 'GET /api/v2/transactions\r\n\r\n'],
    ['CONNECT', 405, 'CONNECT example.com:443 HTTP/1.1\r\nHost: example.com\r\n\r\n'],
  ] as const) {
    test(`answers ${name} with JSON`, async () => {
      const answer = await raw(text);
      assert.equal(answer.status, status);
      assert.match(answer.head, /x-request-id: /i);
      assert.deepEqual(answer.body, UNSUPPORTED);
    });
  }

  for (const [name, text] of [
    ['of HTTP/1.0 without Host', 'GET /api/v2/transactions HTTP/1.0\r\n\r\n'],
    [
      'with an absolute URL',
      'GET http://example.com/api/v2/transactions HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n',
    ],
    [
      'for an upgrade',
      'GET /api/v2/transactions HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: upgrade, close\r\n\r\n',
    ],
    [
      'with an unknown expectation',
      'POST /api/v2/redeem HTTP/1.1\r\nHost: x\r\nExpect: more\r\nConnection: close\r\n\r\n',
    ],
  ] as const) {
    test(`serves a request ${name}`, async () => {
      const answer = await raw(text);
      assert.equal(answer.status, 401);
      assert.deepEqual(answer.body, UNAUTHORIZED);
    });
  }

  test('refuses a request with too large a Content-Length without waiting for the body', async () => {
    const answer = await raw(
      'POST /api/v2/redeem HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 99999999\r\n\r\n{',
    );
    assert.equal(answer.status, 413);
    assert.deepEqual(answer.body, TOO_LARGE);
  });

  test('refuses HTTP/1.1 without Host or with two, before any other check', async () => {
    for (const path of ['/api/v2/transactions', '/merchant-client/v2/redeem', '/nothing', '/healthz']) {
      const answer = await raw(`GET ${path} HTTP/1.1\r\nConnection: close\r\n\r\n`);
      assert.equal(answer.status, 400, path);
      assert.match(answer.head, /x-request-id: /i);
      assert.deepEqual(answer.body, unsupported('Host', 'required', 'is required in HTTP/1.1'));
      const two = await raw(`GET ${path} HTTP/1.1\r\nHost: x\r\nHOST: y\r\nConnection: close\r\n\r\n`);
      assert.equal(two.status, 400, path);
      assert.deepEqual(two.body, unsupported('Host', 'unique', 'must appear once'));
      const keys = 'Authorization: Basic eA==\r\nAUTHORIZATION: Basic eQ==\r\n';
      const twice = await raw(`GET ${path} HTTP/1.1\r\nHost: x\r\n${keys}Connection: close\r\n\r\n`);
      assert.deepEqual(twice.body, unsupported('Authorization', 'unique', 'must appear once'));
      const types = 'Content-Type: application/json\r\ncontent-type: text/plain\r\n';
      const both = await raw(`POST ${path} HTTP/1.1\r\nHost: x\r\n${types}Connection: close\r\n\r\n`);
      assert.deepEqual(both.body, unsupported('Content-Type', 'unique', 'must appear once'));
    }
  });

  test('refuses a Host that is none, and serves every form of one', async () => {
    for (const [host, status] of [
      ...['a b', 'a/b', 'x:y', 'a@b', '[::1', 'a\\b', 'x?y', 'a,b c', '\u00e9'].map(
        (each) => [each, 400] as const,
      ),
      ...['', 'x', 'x:8080', 'x:', '127.0.0.1:1', '[::1]:8080', 'a_b.example', '%C3%A9'].map(
        (each) => [each, 401] as const,
      ),
    ]) {
      const answer = await raw(
        `GET /api/v2/transactions HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`,
      );
      assert.equal(answer.status, status, host);
      if (status === 400)
        assert.deepEqual(
          answer.body,
          unsupported('Host', 'pattern', 'must be a host, with or without a port'),
        );
    }
  });

  test('sends WWW-Authenticate with 401, except to the script of a page', async () => {
    for (const [destination, challenge] of [
      [undefined, 'Basic'],
      ['document', 'Basic'],
      ['iframe', 'Basic'],
      ['EMPTY', 'Basic'],
      ['empty', undefined],
    ] as const) {
      const response = await bare.app.inject({
        url: '/api/v2/transactions',
        headers: destination ? { 'sec-fetch-dest': destination } : {},
      });
      assert.equal(response.statusCode, 401);
      assert.equal(response.headers['www-authenticate'], challenge, destination);
    }
  });
});
