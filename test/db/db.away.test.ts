import assert from 'node:assert/strict';
import { type AddressInfo, connect, createServer } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { openService } from '../../src/cli/open.ts';
import { readConfig } from '../../src/config.ts';
import { isAway, isOutcomeUnknown, isUnavailable, nodeOf } from '../../src/db/errors.ts';
import { openDatabase } from '../../src/db/pool.ts';
import { sql } from '../../src/db/sql.ts';
import { buildServer } from '../../src/http/server.ts';
import { createLogger } from '../../src/log.ts';
import {
  type ApiRequest,
  DIALECTS,
  type Dialect,
  update,
  updateDetails,
  type Voucher,
} from '../support/dialects.ts';
import { onDatabase, startTestService, testDatabase } from '../support/harness.ts';
import { asOwner } from '../support/owner.ts';
import { openWay, startBehindWay } from '../support/way.ts';

const [A] = DIALECTS as [Dialect, Dialect];

async function start(t: TestContext) {
  const testService = await startTestService();
  t.after(testService.stop);
  const way = await openWay(testService.url);
  t.after(way.close);
  const db = openDatabase(way.url, 'scrip-test');
  const app = buildServer(onDatabase(testService.service, db));
  t.after(async () => {
    await app.close();
    await db.close();
  });
  const { authorization } = await testService.createMerchant({ permit: ['update-redemption'] });
  const ask = async ({ method, path, body }: ApiRequest) => {
    const headers = { authorization, 'content-type': 'application/json' };
    const payload = body === undefined ? {} : { payload: JSON.stringify(body) };
    return app.inject({ method, url: path, headers, ...payload });
  };
  return { testService, way, ask };
}

const everyCall = (dialect: Dialect, voucher: Voucher): ApiRequest[] => [
  dialect.generate('y', 1, 1),
  dialect.generate('z', 11, 1),
  dialect.download('x'),
  dialect.activate(voucher, 'y'),
  dialect.balance(voucher),
  dialect.redeem(voucher, 1, 'y'),
  dialect.lookup('y'),
  dialect.list(),
  ...(dialect === A ? [update('y', 1), updateDetails('y')] : []),
];

/** Repeats every call until it works; until then each must be answered with 503. */
async function worksAgain(ask: Awaited<ReturnType<typeof start>>['ask'], dialect: Dialect, voucher: Voucher) {
  for (const request of everyCall(dialect, voucher)) {
    for (;;) {
      const answer = await ask(request);
      if (answer.statusCode !== 503) break;
      assertAway(answer);
      await sleep(50);
    }
  }
}

function assertAway(answer: Awaited<ReturnType<Awaited<ReturnType<typeof start>>['ask']>>): void {
  assert.equal(answer.statusCode, 503);
  assert.deepEqual(answer.json(), { statusCode: '91', message: 'Service unavailable', data: null });
  assert.match(String(answer.headers['retry-after']), /^[1-9]\d*$/);
}

for (const dialect of DIALECTS) {
  describe(`${dialect.name} without its database`, () => {
    test('answers every call with 503, and works when the database is back', async (t) => {
      const { way, ask } = await start(t);
      const [voucher] = (await ask(dialect.generate('x', 1, 25))).json().data.vouchers as [Voucher];
      way.set('closed');
      for (const request of everyCall(dialect, voucher)) assertAway(await ask(request));
      way.set('open');
      const answer = await ask(dialect.redeem(voucher, 1, 'y'));
      assert.deepEqual([answer.statusCode, answer.json().statusCode], [200, '00']);
    });

    test('answers 503 when the answer of the database is lost, and a retry does not pay twice', async (t) => {
      const { way, ask } = await start(t);
      const [voucher] = (await ask(dialect.generate('x', 1, 25))).json().data.vouchers as [Voucher];
      await ask(dialect.redeem(voucher, 1, 'first'));
      // From here on statements arrive and no answer comes back: the service cannot know the outcome.
      way.set('silent');
      const lost = ask(dialect.redeem(voucher, 10, 'sale'));
      setTimeout(way.cut, 300);
      assertAway(await lost);
      way.set('open');
      const again = await ask(dialect.redeem(voucher, 10, 'sale'));
      assert.deepEqual([again.statusCode, again.json().statusCode], [200, '00']);
      assert.equal((await ask(dialect.balance(voucher))).json().data.balance, 14);
    });

    // These tests wait for timeouts of the pool, which is below both variants: one of them is enough.
    const ways =
      dialect === A
        ? ([
            ['3 seconds', 3_000],
            ['100 ms', 100],
          ] as const)
        : [];
    for (const [what, lostMs] of ways) {
      test(`recovers after all connections went silent and the network was lost for ${what}`, async (t) => {
        const { way, ask } = await start(t);
        const [voucher] = (await ask(dialect.generate('x', 1, 25))).json().data.vouchers as [Voucher];
        // Opens connections of both pools. None of them will ever answer again.
        await Promise.all(everyCall(dialect, voucher).map(ask));
        const before = (await ask(dialect.balance(voucher))).json().data.balance;
        way.set('lost');
        const waiting = Promise.all(
          Array.from({ length: 100 }, (_, at) => ask(dialect.redeem(voucher, 0.01, `${at}`))),
        );
        await sleep(lostMs);
        way.set('open');
        const answers = await waiting;
        for (const answer of answers.filter(({ statusCode }) => statusCode !== 200)) assertAway(answer);
        await worksAgain(ask, dialect, voucher);
        for (let at = 0; at < 100; at++) await ask(dialect.redeem(voucher, 0.01, `${at}`));
        assert.equal((await ask(dialect.balance(voucher))).json().data.balance, before - 1);
      });
    }

    test('answers 503 while the database hangs, and works when it runs again', async (t) => {
      const { way, ask } = await start(t);
      const [voucher] = (await ask(dialect.generate('x', 1, 25))).json().data.vouchers as [Voucher];
      way.set('paused');
      const ready = await ask({ method: 'GET', path: '/readyz' });
      assert.equal(ready.statusCode, 503);
      // No connection breaks: the service gives up by itself, on the statement and on those behind it.
      const answers = await Promise.all(
        Array.from({ length: 300 }, (_, at) => ask(dialect.redeem(voucher, 0.01, `sale-${at}`))),
      );
      for (const answer of answers) assertAway(answer);
      way.set('open');
      while ((await ask({ method: 'GET', path: '/readyz' })).statusCode !== 200) await sleep(10);
      const again = await ask(dialect.redeem(voucher, 0.01, 'sale-0'));
      assert.deepEqual([again.statusCode, again.json().statusCode], [200, '00']);
    });
  });
}

test('slow and waiting statements are not cancelled while the server answers', async (t) => {
  const testService = await startTestService();
  t.after(testService.stop);
  const { db } = testService.service;
  const long = db.query(sql`select pg_sleep(3)`);
  await db.transaction(async (holder) => {
    await holder.query(sql`lock table scrip.products in access exclusive mode`);
    const waiting = db.query(sql`select from scrip.products`);
    await holder.query(sql`select pg_sleep(3)`);
    setTimeout(() => void waiting.catch(() => {}));
  });
  assert.equal((await long).length, 1);
});

test('an error of the network counts as an absent database, whatever its code', () => {
  for (const code of ['EPIPE', 'ECONNRESET', 'ENETUNREACH', 'EMFILE']) {
    const error = Object.assign(new Error('no'), { code });
    assert.deepEqual([isUnavailable(error), isAway(error)], [true, true], code);
  }
  assert.equal(isAway(Object.assign(new Error('no'), { code: '57P01' })), false);
});

test('calls get 503 while the database takes no connections, and while its name is another one', async (t) => {
  const { testService, ask } = await start(t);
  const [voucher] = (await ask(A.generate('x', 1, 25))).json().data.vouchers as [Voucher];
  const server = new URL(testService.url);
  const name = server.pathname.slice(1);
  server.pathname = '/postgres';
  const change = async (statement: string) => {
    await asOwner(server.href, statement);
    await asOwner(
      server.href,
      `select pg_terminate_backend(pid) from pg_stat_activity where datname like '${name}%'`,
    );
  };
  for (const [away, back] of [
    [`alter database ${name} allow_connections false`, `alter database ${name} allow_connections true`],
    [`alter database ${name} rename to ${name}_other`, `alter database ${name}_other rename to ${name}`],
  ] as const) {
    await change(`alter database ${name} allow_connections false`);
    await change(away);
    for (let call = 0; call < 3; call++) assertAway(await ask(A.redeem(voucher, 1, away)));
    await change(back);
    await change(`alter database ${name} allow_connections true`);
    const ready = async () => (await ask({ method: 'GET', path: '/readyz' })).statusCode;
    while ((await ready()) !== 200) await sleep(20);
    assert.equal((await ask(A.redeem(voucher, 1, away))).json().statusCode, '00');
  }
});

test('a process is not ready while a lock stops bookings, and is again once one succeeds', async (t) => {
  const { testService, ask } = await start(t);
  const [voucher] = (await ask(A.generate('x', 1, 25))).json().data.vouchers as [Voucher];
  const ready = async () => (await ask({ method: 'GET', path: '/readyz' })).statusCode;
  const owner = new pg.Client(testService.url);
  await owner.connect();
  // Reads go on, as while an index is built.
  await owner.query('begin; lock table scrip.journal in share mode');
  assertAway(await ask(A.redeem(voucher, 1, 'y')));
  assert.equal(await ready(), 503);
  assert.equal((await ask(A.balance(voucher))).json().statusCode, '00');
  await owner.end();
  assert.equal((await ask(A.redeem(voucher, 1, 'y'))).json().statusCode, '00');
  assert.equal(await ready(), 200);
});

test('a server that accepts a connection and says nothing counts as away', async (t) => {
  const server = createServer((socket) => void socket.on('error', () => {}));
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  const client = new pg.Client({ host: '127.0.0.1', port, connectionTimeoutMillis: 50 });
  const error = await client.connect().catch((refused: unknown) => refused);
  assert.deepEqual([isUnavailable(error), isAway(error), isOutcomeUnknown(error)], [true, true, false]);
});

test('a certificate that is refused is no bug, and nothing was sent to its server', () => {
  for (const code of [
    ...['CERT_HAS_EXPIRED', 'SELF_SIGNED_CERT_IN_CHAIN', 'DEPTH_ZERO_SELF_SIGNED_CERT'],
    ...['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'ERR_TLS_CERT_ALTNAME_INVALID', 'HOSTNAME_MISMATCH'],
  ]) {
    const error = Object.assign(new Error('no'), { code });
    // The server does answer: calls on other connections go on.
    assert.deepEqual(
      [isUnavailable(error), isAway(error), isOutcomeUnknown(error)],
      [true, false, false],
      code,
    );
  }
  for (const code of ['EPROTO', 'ERR_SSL_DECRYPTION_FAILED_OR_BAD_RECORD_MAC']) {
    const error = Object.assign(new Error('no'), { code });
    assert.deepEqual([isUnavailable(error), isOutcomeUnknown(error)], [true, true], code);
  }
  assert.equal(isUnavailable(Object.assign(new Error('no'), { code: 'INVALID_ARGUMENT' })), false);
});

test('a Citus server that is shut down or has lost a worker counts as unavailable', () => {
  for (const message of [
    'postmaster was shut down, exiting',
    'terminating connection due to unexpected postmaster exit',
    'failure on connection marked as essential: 10.0.0.2:5432',
    'connection to the remote node scrip_service@10.0.0.2:5432 failed with the following error: timeout expired',
    'server closed the connection unexpectedly\n\tThis probably means the server terminated abnormally',
    'no connection to the server',
    'connection not open',
    'could not receive data from server: Connection reset by peer',
    'could not send data to server: Broken pipe',
    'connection to server at "10.0.0.2", port 5432 failed: Connection refused',
    'SSL SYSCALL error: EOF detected',
    'SSL connection has been closed unexpectedly',
    'lost synchronization with server: got message type "a", length 1',
  ])
    assert.equal(isUnavailable(Object.assign(new Error(message), { code: 'XX000' })), true, message);
  assert.equal(isUnavailable(Object.assign(new Error('cache lookup failed'), { code: 'XX000' })), false);
});

test('an error of a cluster names the node that is away', () => {
  for (const [message, where] of [
    ['connection to the remote node scrip_service@10.0.0.2:5432 failed with the following error: timeout'],
    ['failure on connection marked as essential: 10.0.0.2:5432'],
    ['server closed the connection unexpectedly', 'while executing command on 10.0.0.2:5432'],
  ])
    assert.equal(nodeOf(Object.assign(new Error(message), { code: 'XX000', where })), '10.0.0.2:5432');
  assert.equal(nodeOf(Object.assign(new Error('connect ECONNREFUSED 10.0.0.1:5432'))), undefined);
});

test('a connection of the owner waits for a server that is starting', async (t) => {
  const { url } = await testDatabase(t);
  let refusals = 0;
  const server = createServer((socket) => {
    socket.on('error', () => {});
    if (++refusals > 2) {
      const { hostname, port } = new URL(url);
      const database = connect(Number(port), hostname);
      database.on('error', () => socket.destroy());
      socket.pipe(database).pipe(socket);
      return;
    }
    const fields = Buffer.from('SFATAL\0C57P03\0Mthe database system is starting up\0\0');
    const head = Buffer.from('E\0\0\0\0');
    head.writeInt32BE(fields.length + 4, 1);
    socket.once('data', () => socket.end(Buffer.concat([head, fields])));
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  t.after(() => server.close());
  const address = new URL(url);
  address.host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  await asOwner(address.href, sql`select 1`);
  assert.equal(refusals, 3);
});

test('a connection that breaks in a transaction fails no other statement', async (t) => {
  const { way, db } = await startBehindWay(t);
  const broken = db.transaction(async (tx) => {
    await tx.query(sql`select 1`);
    way.cut();
    await sleep(100);
    await tx.query(sql`select 1`);
  });
  await assert.rejects(broken, isUnavailable);
  assert.equal((await db.query(sql`select 1`)).length, 1);
});

test('every session has timeouts, by which the server ends it when its connection is lost', async (t) => {
  const testService = await startTestService();
  t.after(testService.stop);
  const { db } = testService.service;
  const names = [
    'client_connection_check_interval',
    'idle_in_transaction_session_timeout',
    'lock_timeout',
    'statement_timeout',
  ];
  const text = 'select name, setting || unit as setting from pg_settings where name = any ($1) order by name';
  const limits = [
    { name: 'client_connection_check_interval', setting: '2000ms' },
    { name: 'idle_in_transaction_session_timeout', setting: '15000ms' },
    { name: 'lock_timeout', setting: '5000ms' },
    { name: 'statement_timeout', setting: '15000ms' },
  ];
  assert.deepEqual(await db.query({ text, values: [names] }), limits);
  assert.deepEqual(await db.hot({ name: 'limits', text }, [names]), limits);
  assert.deepEqual(await db.transaction((tx) => tx.query({ text, values: [names] })), limits);
});

test('a command waits for a server that is busy for seconds', async (t) => {
  const { url, keys, stop } = await startTestService();
  t.after(stop);
  const way = await openWay(url);
  const config = readConfig({ SCRIP_DATABASE_URL: way.url, SCRIP_KEYS: keys });
  const opened = await openService(config, { name: 'scrip', create: false, log: createLogger('silent') });
  t.after(() => opened.close().finally(() => way.close()));
  const { db } = opened.service;
  await db.query(sql`select 1`);
  way.set('paused');
  const waiting = db.query<{ one: number }>(sql`select 1 as one`);
  await sleep(3_000); // longer than a call of a till waits
  way.set('open');
  assert.deepEqual(await waiting, [{ one: 1 }]);
});

test('no session compiles statements, which takes longer than to run those of a till', async (t) => {
  const { url, stop } = await startTestService();
  t.after(stop);
  await asOwner(url, `alter database ${new URL(url).pathname.slice(1)} set jit = on`);
  const db = openDatabase(url);
  t.after(() => db.close());
  assert.deepEqual(await db.query({ text: 'show jit', values: [] }), [{ jit: 'off' }]);
  assert.deepEqual(await db.hot({ name: 'jit', text: 'show jit' }, []), [{ jit: 'off' }]);
});

test('a transaction whose connection is lost releases its locks at the idle timeout', async (t) => {
  const { testService, way, db } = await startBehindWay(t);
  const lost = db.transaction(async (tx) => {
    await tx.query(sql`set local idle_in_transaction_session_timeout = '1s'`);
    await tx.query(sql`lock table scrip.products in access exclusive mode`);
    way.set('lost');
    await tx.query(sql`select 1`);
  });
  await assert.rejects(lost, isUnavailable);
  way.set('open');
  while ((await db.query(sql`select 1`).catch(() => [])).length === 0) await sleep(50);
  // Without the idle timeout this statement would wait for the lock until its own timeout, and fail.
  assert.ok((await testService.service.db.query(sql`select from scrip.products`)).length > 0);
});
