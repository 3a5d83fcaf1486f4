import assert from 'node:assert/strict';
import { once } from 'node:events';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import Type from 'typebox';
import { openOwner } from '../../src/db/pool.ts';
import { sql } from '../../src/db/sql.ts';
import { begun } from '../../src/http/answer.ts';
import { alone, changing } from '../../src/operation.ts';
import { perform } from '../../src/operations/perform.ts';
import { Problem } from '../../src/problem.ts';
import { enrolled } from '../support/browser.ts';
import { COMMAND_LINE } from '../support/harness.ts';
import { operatorApi } from '../support/operator.api.ts';
import { until } from '../support/until.ts';

const api = operatorApi();

describe('the operator API', () => {
  test('lists merchants with cursors, and shows one', async () => {
    const made = await Promise.all(
      ['One', 'Two', 'Three'].map((name) => api.testService.createMerchant({ name })),
    );
    const first = await api.get('/merchants?limit=2');
    assert.equal(first.status, 200);
    assert.equal(first.body.items.length, 2);
    const rest = await api.get(`/merchants?limit=2&cursor=${first.body.nextCursor}`);
    assert.equal(rest.body.items.length, 1);
    assert.equal(rest.body.nextCursor, null);
    const shown = await api.get(`/merchants/${made[0]?.id}`);
    assert.equal(shown.body.name, 'One');
    assert.deepEqual(shown.body.floats, [{ currency: 'USD', balance: 100_000 }]);
  });

  test('creates a merchant with the settings that can be changed later', async () => {
    const set = { opaque: true, product: 'DEFAULT', language: 'de' };
    const { body } = await api.post('/merchants', { name: 'Laden', ...set });
    const { opaque, product, language } = (await api.get(`/merchants/${body.id}`)).body;
    assert.deepEqual({ opaque, product, language }, set);
  });

  test('compresses what it reads, and never the answer to a change', async () => {
    const created = Array.from({ length: 8 }, (_, index) =>
      api.post('/merchants', { name: `Shop ${index}` }),
    );
    const made = await Promise.all(created);
    assert.deepEqual(new Set(made.map(({ status }) => status)), new Set([201]));
    const [read, brotli, short, plain] = await Promise.all([
      api.get('/merchants'),
      api.get('/merchants', { 'accept-encoding': 'gzip, deflate, br' }),
      api.get('/merchants?limit=1'),
      api.get('/merchants', { 'accept-encoding': 'identity' }),
    ]);
    const encodings = [read, brotli, short, plain, ...made].map(({ headers }) =>
      headers.get('content-encoding'),
    );
    assert.deepEqual(encodings, ['gzip', 'br', ...Array.from({ length: 10 }, () => null)]);
    assert.deepEqual([plain.body, brotli.body], [read.body, read.body]);
    assert.equal(short.headers.get('vary'), 'accept-encoding');
  });

  test('finds merchants by the beginnings of words, and floats below their warning level', async () => {
    const { id } = await api.testService.createMerchant({ name: '100%_Kiosk' });
    await api.testService.createMerchant({ name: '100 Kiosks' });
    const named = async (text: string) =>
      (await api.get(`/merchants?name=${encodeURIComponent(text)}`)).body.items.map(
        (each: { name: string }) => each.name,
      );
    assert.deepEqual(await named('kIOSK'), ['100%_Kiosk', '100 Kiosks']);
    assert.deepEqual(await named('kios 100'), ['100%_Kiosk', '100 Kiosks']);
    assert.deepEqual(await named("kiosks' & !"), ['100 Kiosks']);
    assert.deepEqual([await named('iosk'), await named('%_')], [[], []]);
    const warned = await api.post('/floats/warn', { merchantId: String(id), below: 100_001 });
    assert.equal(warned.status, 200);
    const inEuro = await api.post('/floats/warn', { merchantId: String(id), below: 1, currency: 'EUR' });
    assert.deepEqual([inEuro.status, inEuro.body.code], [409, 'conflict']);
    const { items } = (await api.get('/floats/low')).body;
    const low = { merchantId: String(id), merchant: '100%_Kiosk', currency: 'USD', balance: 100_000 };
    assert.deepEqual(items, [{ ...low, usePerDay: 0, daysLeft: null, low: 100_001 }]);
  });

  test('lists the floats of all, page by page, and of one merchant', async () => {
    const made = [await api.testService.createMerchant({}), await api.testService.createMerchant({})];
    const ids: string[] = [];
    let cursor: string | null = '';
    while (cursor !== null) {
      const { body }: { body: { items: { merchantId: string }[]; nextCursor: string | null } } =
        await api.get(`/floats?limit=2${cursor && `&cursor=${cursor}`}`);
      assert.ok(body.items.length <= 2);
      ids.push(...body.items.map(({ merchantId }) => merchantId));
      cursor = body.nextCursor;
    }
    assert.deepEqual(new Set(ids).size, ids.length);
    for (const { id } of made) assert.ok(ids.includes(String(id)));
    const own = await api.get(`/floats?merchantId=${made[0]?.id}`);
    assert.deepEqual(
      own.body.items.map((each: { merchantId: string }) => each.merchantId),
      [String(made[0]?.id)],
    );
  });

  test('performs a write once for an Idempotency-Key, and refuses another write with it', async () => {
    const { id } = await api.testService.createMerchant({ name: 'Once' });
    const headers = { 'idempotency-key': 'suspend-once' };
    const [one, two] = await Promise.all([1, 2].map(() => api.post(`/merchants/${id}/suspend`, {}, headers)));
    assert.deepEqual([one?.status, two?.status], [200, 200]);
    assert.deepEqual(one?.body, two?.body);
    const replays = [one, two].map((each) => each?.headers.get('idempotent-replayed'));
    assert.deepEqual(replays.sort(), ['true', null].sort());
    const other = await api.post(`/merchants/${id}/resume`, {}, headers);
    assert.deepEqual([other.status, other.body.code], [409, 'idempotency-key-reused']);
    assert.equal(other.body.errors[0].field, 'Idempotency-Key');
    const { body } = await api.get(`/merchants/${id}`);
    assert.notEqual(body.suspendedAt, null);
    // The key is that of its caller: somebody else's is another one.
    const authorization = `Bearer ${await api.token(['owner'])}`;
    const others = await api.post(`/merchants/${id}/resume`, {}, { ...headers, authorization });
    assert.deepEqual([others.status, others.headers.get('idempotent-replayed')], [200, null]);
  });

  test('frees the key of what failed outside a transaction, and a minute later that of what was killed', async () => {
    const outside = changing({
      ...{
        name: 'test.outside',
        summary: 'Work outside a transaction',
        path: '/outside',
        method: 'POST',
        command: { none: 'of this test' },
      },
      ...{ input: { how: Type.String() }, output: Type.String(), roles: ['owner'] },
      ...{ audit: null, approval: alone('It is a test.'), effect: 'outside' },
      run: (_caller, { how }) => outcomes.shift()?.(how) ?? Promise.reject(new Error('called too often')),
    });
    const outcomes = [
      () => Promise.reject(new Problem('conflict')),
      () => Promise.reject(new Error('broken')),
      // As of a process that was killed: nothing comes back.
      () => new Promise<string>(() => {}),
      (how: string) => Promise.resolve(`done ${how}`),
    ];
    const { service } = api.testService;
    const ask = (how: string) =>
      perform(outside as never, { service, principal: COMMAND_LINE, input: { how }, idempotencyKey: 'one' });
    await assert.rejects(ask('at last'), { code: 'conflict' });
    await assert.rejects(ask('at last'), /broken/);
    void ask('at last');
    await until('it is performed', () => outcomes.length === 1);
    await assert.rejects(ask('at last'), { code: 'in-progress' });
    await service.db.query(sql`
update operator_requests set created_at = created_at - interval '61 seconds' where operation = 'test.outside'`);
    await assert.rejects(ask('something else'), { code: 'idempotency-key-reused' });
    assert.deepEqual(await ask('at last'), { output: 'done at last', replayed: false });
    assert.deepEqual(await ask('at last'), { output: 'done at last', replayed: true, proposed: false });
  });

  test('answers an invalid request with a problem document that names the field', async () => {
    const { id } = await api.testService.createMerchant();
    const cases: readonly [string, ReturnType<typeof api.get>, number, string][] = [
      ['limit', api.get('/merchants?limit=201'), 400, 'invalid'],
      ['limit', api.get('/merchants?limit=abc'), 400, 'invalid'],
      ['cursor', api.get('/merchants?cursor=nothing'), 400, 'invalid'],
      ['surprise', api.get('/merchants?surprise=1'), 400, 'invalid'],
      ['to', api.get('/transactions?from=2030-02-01&to=2030-01-31'), 400, 'invalid'],
      ['to', api.get('/audit?from=2030-02-01&to=2030-01-31'), 400, 'invalid'],
      ['reason', api.post(`/merchants/${id}/suspend`, { reason: 5 }), 400, 'invalid'],
      ['id', api.get('/merchants/x'), 400, 'invalid'],
      ['id', api.get('/merchants/9999999999'), 400, 'invalid'],
    ];
    for (const [field, request, expected, code] of cases) {
      const { status, body, headers } = await request;
      assert.deepEqual([status, body.code, body.errors[0].field], [expected, code, field]);
      assert.match(headers.get('content-type') ?? '', /^application\/problem\+json/);
      assert.equal(body.requestId, headers.get('x-request-id'));
    }
    const messageOf = async (reason: string) =>
      (await api.post(`/merchants/${id}/suspend`, { reason })).body.errors[0].message;
    assert.equal(await messageOf(''), 'must not be empty');
    const oneLine = 'must be one line without control, direction or zero-width characters';
    assert.equal(await messageOf('a\u202eb'), oneLine);
    const { body } = await api.get('/merchants/x');
    assert.equal(body.errors[0].message, 'has the wrong form: it is written like 1');
    const missing = await api.get('/merchants/999999');
    assert.deepEqual([missing.status, missing.body.code], [404, 'not-found']);
    for (const path of ['', '/', '/nothing', '?x=1']) {
      const unknown = await api.get(path);
      assert.deepEqual([unknown.status, unknown.body.code], [404, '98'], path);
    }
  });

  test('lets a request wait for a connection while others hold all of them', async (t) => {
    const { id } = await api.testService.createMerchant();
    const owner = await openOwner(api.testService.url);
    t.after(() => owner.close());
    await owner.query(sql`begin`);
    await owner.query(sql`select from scrip.merchants where id = ${id} for update`);
    const changes = Array.from({ length: 4 }, () => api.post(`/merchants/${id}/suspend`, {}));
    // Longer than a till would wait.
    await Promise.race([...changes, sleep(2_000)]);
    await owner.query(sql`commit`);
    for (const { status, body } of await Promise.all(changes))
      assert.equal(status, 200, JSON.stringify(body));
  });

  test('refuses a cursor of another list, or of other filters', async () => {
    const page = await api.get('/merchants?limit=1');
    for (const other of ['/tokens?', '/merchants?name=x&']) {
      const { status, body } = await api.get(`${other}cursor=${page.body.nextCursor}`);
      assert.deepEqual([status, body.errors[0].field], [400, 'cursor'], other);
    }
  });

  test('refuses a cursor whose position was edited', async () => {
    const page = await api.get('/merchants?limit=1');
    const signed = Buffer.from(page.body.nextCursor, 'base64url');
    for (const position of ['x', 1e99, 0]) {
      const text = Buffer.from(JSON.stringify([position]));
      const edited = Buffer.concat([text, signed.subarray(-16)]).toString('base64url');
      const { status, body } = await api.get(`/merchants?limit=1&cursor=${edited}`);
      assert.deepEqual([status, body.errors?.[0].field], [400, 'cursor']);
    }
  });
});

describe('a token', () => {
  test('is shown once, and refused from its revocation on', async () => {
    const { browser } = await enrolled(api.testService);
    const make = () => browser.post('/tokens', { roles: ['support'] }, { 'idempotency-key': 'make-a-token' });
    const made = await make();
    assert.equal(made.status, 201);
    assert.match(made.body.token, /^scrop_[0-9A-Za-z]{49}$/);
    const again = await make();
    assert.deepEqual([again.body.id, again.body.token], [made.body.id, null]);
    const { body: listed } = await api.get(`/tokens?prefix=${made.body.token.slice(0, 10)}`);
    assert.deepEqual(
      listed.items.map((each: { id: string }) => each.id),
      [made.body.id],
    );
    assert.ok(!JSON.stringify(listed).includes(made.body.token.slice(0, 11)));
    const as = { authorization: `Bearer ${made.body.token}` };
    assert.equal((await api.get('/merchants', as)).status, 200);
    assert.equal((await api.get('/tokens', as)).status, 403);
    await api.post(`/tokens/${made.body.id}/revoke`, {});
    assert.equal((await api.get('/merchants', as)).status, 401);
  });

  test('is refused alike when it is unknown, malformed or from another network', async () => {
    const { browser } = await enrolled(api.testService, { email: 'bob@example.com' });
    const elsewhere = await browser.post('/tokens', { roles: ['support'], networks: ['192.0.2.0/24'] });
    const expiring = await browser.post('/tokens', { roles: ['support'], expiresAt: '2999-01-01' });
    assert.equal(expiring.body.errors[0].field, 'expiresAt');
    for (const authorization of [
      '',
      'Bearer x',
      `Bearer scrop_${'A'.repeat(49)}`,
      `Bearer ${elsewhere.body.token}`,
      'Basic a2V5OnNlY3JldA==',
    ]) {
      const { status, body, headers } = await api.get('/merchants', { authorization });
      assert.deepEqual([status, body.code], [401, 'unauthorized']);
      assert.equal(headers.get('www-authenticate'), 'Bearer');
    }
  });
});

test('a file whose client is gone before it is read leaves nothing open', async () => {
  let isOpen = false;
  async function* pieces() {
    isOpen = true;
    try {
      yield 'first';
      yield 'second';
    } finally {
      isOpen = false;
    }
  }
  const unread = await begun(pieces());
  assert.ok(isOpen);
  unread.destroy();
  await once(unread, 'close');
  assert.equal(isOpen, false);
  const read = await Array.fromAsync(await begun(pieces()));
  assert.deepEqual([read.join(''), isOpen], ['firstsecond', false]);
});
