import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { FastifyRequest } from 'fastify';
import { Wire } from '../../bench/wire.ts';
import type { Merchant } from '../../src/context.ts';
import { sql } from '../../src/db/sql.ts';
import { AdmissionControl } from '../../src/http/overload.ts';
import { Refusal } from '../../src/refusal.ts';
import { type ApiRequest, DIALECTS, type Voucher } from '../support/dialects.ts';
import { testService } from '../support/harness.ts';
import { ownerOf } from '../support/owner.ts';
import { Till } from '../support/till.ts';

/** More requests than the service processes at once: a merchant that floods is declined, and no other. */

const [A, B] = DIALECTS;
assert.ok(A && B);
/** The bound on concurrent requests, and a number above it. */
const CONCURRENT_MAX = 1_024;
const STUCK = 1_100;
/** Fewer than the backlog of the listener: on a busy machine, connections beyond it would be late. */
const COPIES = 400;

for (const dialect of DIALECTS) {
  test(`concurrent copies of a redemption have one effect and one answer, by ${dialect.name}`, async (t) => {
    const till = await Till.open(t);
    const voucher = await till.voucher();
    const copies = Array.from({ length: COPIES }, () => till.ask(dialect.redeem(voucher, 1, 'sale')));
    const answers = await Promise.all(copies);
    assert.deepEqual([...new Set(answers.map(({ statusCode }) => statusCode))], ['00']);
    assert.equal(new Set(answers.map(({ data }) => data.transactionId)).size, 1);
    assert.equal(answers.filter(({ replayed }) => !replayed).length, 1);
    assert.equal(await till.balanceOf(voucher), 24);
  });
}

/** The bytes of a request. */
function raw(authorization: string, { method, path, body }: ApiRequest): string {
  const text = body === undefined ? '' : JSON.stringify(body);
  const head = [`${method} ${path} HTTP/1.1`, 'Host: 127.0.0.1', `Authorization: ${authorization}`];
  if (text !== '') head.push('Content-Type: application/json', `Content-Length: ${Buffer.byteLength(text)}`);
  return `${head.join('\r\n')}\r\n\r\n${text}`;
}

async function connections(t: TestContext, till: Till, count: number): Promise<Wire[]> {
  const wires = await Promise.all(Array.from({ length: count }, () => Wire.open(till.testService.baseUrl)));
  t.signal.addEventListener('abort', () => {
    for (const wire of wires) wire.close();
  });
  return wires;
}

/**
 * Sends a request over each connection, and the next one after each answer, until a request is declined
 * with 503. Returns a function that stops the flood and returns the number of answers by status.
 */
async function flood(t: TestContext, till: Till, count: number, request: () => string) {
  const wires = await connections(t, till, count);
  const counts = new Map<number, number>();
  let isRunning = true;
  let others: Promise<unknown> = Promise.resolve();
  const isRefused = new Promise<void>((resolve) => {
    others = Promise.all(
      wires.map(async (wire) => {
        while (isRunning) {
          const { status } = await wire.ask(request());
          counts.set(status, (counts.get(status) ?? 0) + 1);
          if (status === 503) resolve();
        }
        wire.close();
      }),
    );
  });
  await isRefused;
  return async () => {
    isRunning = false;
    await others;
    return counts;
  };
}

/** Locks a voucher until `commit`. */
async function lock(t: TestContext, till: Till, { serialNumber }: Voucher) {
  const owner = await ownerOf(t, till.testService.url);
  await owner.query(sql`begin`);
  await owner.query(sql`select from scrip.vouchers where serial_number = ${serialNumber} for update`);
  return owner;
}

/** The calls of a merchant with a few customers at a time. All of them must succeed. */
async function serve(
  till: Till,
  dialect: (typeof DIALECTS)[number],
  day: string,
  sales: number,
): Promise<void> {
  const vouchers = await till.vouchers(4);
  await Promise.all(
    vouchers.map(async (voucher, customer) => {
      for (let sale = 1; sale <= sales; sale++) {
        const reference = `${day}-${customer}-${sale}`;
        const requests = [
          dialect.redeem(voucher, 1, reference),
          dialect.balance(voucher),
          dialect.lookup(reference),
        ];
        for (const request of requests) await till.done(request);
      }
    }),
  );
}

for (const dialect of DIALECTS) {
  // The requests of the flood wait for a lock, so that the service is full and the machine is not busy.
  test(`a merchant is answered while another one floods the service, by ${dialect.name}`, async (t) => {
    const listening = await testService(t);
    const [flooding, modest] = [await Till.another(listening), await Till.another(listening)];
    const voucher = await flooding.voucher(null);
    const owner = await lock(t, flooding, voucher);
    let call = 0;
    const stop = await flood(t, flooding, STUCK, () =>
      raw(flooding.merchant.authorization, dialect.activate(voucher, `flood-${++call}`)),
    );
    await serve(modest, dialect, 'beside', 6);
    await owner.query(sql`commit`);
    assert.ok((await stop()).has(503));
    await modest.reconciles();
  });
}

test('a full service declines the merchant that filled it, and admits others', async (t) => {
  const listening = await testService(t);
  const [flooding, known, fresh] = [
    await Till.another(listening),
    await Till.another(listening),
    await Till.another(listening),
  ];
  const voucher = await flooding.voucher(2_000);
  await known.done(A.list());
  const wires = await connections(t, flooding, STUCK);
  const owner = await lock(t, flooding, voucher);
  let refused = 0;
  const sales = wires.map(async (wire, number) => {
    const answer = await wire.ask(
      raw(flooding.merchant.authorization, B.redeem(voucher, 1, `sale-${number}`)),
    );
    if (answer.status === 503) refused++;
    return answer;
  });
  while (refused === 0) await Promise.race(sales);
  // The merchant that filled the service is declined, and a merchant without a request in progress is not.
  await flooding.refused(A, '91', A.list());
  await Promise.all(Array.from({ length: 50 }, () => known.done(A.list())));
  await fresh.done(A.list());
  await flooding.refused(A, '91', A.list());
  await owner.query(sql`commit`);
  const answers = await Promise.all(sales);
  for (const { status, head, body } of answers) {
    const answer = JSON.parse(body.toString());
    assert.deepEqual([status, answer.statusCode], status === 503 ? [503, '91'] : [200, '00']);
    if (status !== 503) continue;
    assert.match(head, /\r\nretry-after: 1\r\n/i);
    assert.deepEqual(answer, { statusCode: '91', message: 'Service unavailable', data: null });
  }
  // Declined sales are sent again under their references. Each had no effect, or is a replay: on a busy
  // machine a call may time out while it is being booked.
  for (const [number, { status }] of answers.entries())
    if (status === 503) await flooding.done(B.redeem(voucher, 1, `sale-${number}`));
  assert.equal(await flooding.balanceOf(voucher), 2_000 - STUCK);
  // The flood is over and holds no place.
  await flooding.done(B.redeem(voucher, 1, 'afterwards'));
  for (const wire of wires) wire.close();
});

/** The fields of a request that the admission control reads. */
const requestOf = (authorization?: string) =>
  ({ headers: { authorization }, countedFor: undefined }) as unknown as FastifyRequest;
const merchantOf = (id: number) => ({ id }) as Merchant;
const isRefused = (error: unknown) => error instanceof Refusal && error.code === '91';

/** Admits requests with a header; those of a merchant are authenticated at once. */
function admit(
  control: AdmissionControl,
  count: number,
  authorization: string,
  merchant?: Merchant,
): FastifyRequest[] {
  return Array.from({ length: count }, () => {
    const request = requestOf(authorization);
    control.enter(request);
    if (merchant) control.recognize(request, merchant);
    return request;
  });
}

test('unauthenticated requests share the place of one merchant, whatever their credentials', () => {
  const control = new AdmissionControl();
  const merchant = merchantOf(1);
  for (const known of admit(control, 1, 'Basic known', merchant)) control.leave(known);
  for (let guess = 0; guess < CONCURRENT_MAX; guess++) admit(control, 1, `Basic invented-${guess}`);
  assert.throws(() => admit(control, 1, 'Basic invented'), isRefused);
  // The merchant has half of the places, for its requests before and after authentication.
  admit(control, CONCURRENT_MAX / 4, 'Basic known', merchant);
  admit(control, CONCURRENT_MAX / 4, 'Basic known');
  assert.throws(() => admit(control, 1, 'Basic known'), isRefused);
});

test('a full service admits each merchant up to an equal share, and at least one request of each', () => {
  const control = new AdmissionControl();
  const visitors = Array.from({ length: 100 }, (_, number) => merchantOf(number + 2));
  for (const visitor of visitors) {
    for (const request of admit(control, 1, `Basic ${visitor.id}`, visitor)) control.leave(request);
  }
  admit(control, CONCURRENT_MAX, 'Basic flood', merchantOf(1));
  assert.throws(() => admit(control, 1, 'Basic flood'), isRefused);
  admit(control, CONCURRENT_MAX / 2, 'Basic 2', visitors[0]);
  assert.throws(() => admit(control, 1, 'Basic 2'), isRefused);
  for (const visitor of visitors.slice(1)) admit(control, 1, `Basic ${visitor.id}`, visitor);
});

test('a request that ends frees one place, once', () => {
  const control = new AdmissionControl();
  const [first] = admit(control, CONCURRENT_MAX, 'Basic flood', merchantOf(1));
  assert.ok(first);
  control.leave(first);
  control.leave(first);
  admit(control, 1, 'Basic flood', merchantOf(1));
  assert.throws(() => admit(control, 1, 'Basic flood'), isRefused);
});

test('revoked credentials no longer count as those of the merchant', () => {
  const control = new AdmissionControl();
  for (const request of admit(control, 1, 'Basic revoked', merchantOf(1))) control.leave(request);
  admit(control, CONCURRENT_MAX, 'Basic invented');
  const [request] = admit(control, 1, 'Basic revoked');
  control.forget(request ?? assert.fail());
  assert.throws(() => admit(control, 1, 'Basic revoked'), isRefused);
});
