import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { FastifyRequest } from 'fastify';
import { Wire } from '../bench/wire.ts';
import type { Merchant } from '../src/context.ts';
import { openOwner } from '../src/db/pool.ts';
import { sql } from '../src/db/sql.ts';
import { AdmissionControl } from '../src/http/overload.ts';
import { Refusal } from '../src/refusal.ts';
import { type Asked, DIALECTS, type Voucher } from './dialects.ts';
import { testService } from './harness.ts';
import { Till } from './till.ts';

/** What becomes of more requests than can be worked on: merchants that flood are refused, and no others. */

const [A, B] = DIALECTS;
assert.ok(A && B);
/** As many as are worked on at the same time, and a few more. */
const CONCURRENT_MAX = 1_024;
const STUCK = 1_100;
/** Fewer than the connections that wait to be accepted: on a busy machine the others would be late. */
const COPIES = 400;

for (const dialect of DIALECTS) {
  test(`hundreds of copies of a redemption at once have one effect and all get its answer, by ${dialect.name}`, async (t) => {
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

/** A request as it goes over the wire. */
function raw(authorization: string, { method, path, body }: Asked): string {
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
 * Asks over each connection, and again as soon as it is answered, until it is stopped; then tells how
 * often each status came.
 */
async function flood(t: TestContext, till: Till, count: number, request: () => string) {
  const wires = await connections(t, till, count);
  const counts = new Map<number, number>();
  let goesOn = true;
  let others: Promise<unknown> = Promise.resolve();
  const isRefused = new Promise<void>((resolve) => {
    others = Promise.all(
      wires.map(async (wire) => {
        while (goesOn) {
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
    goesOn = false;
    await others;
    return counts;
  };
}

/** Keeps a voucher from being worked on until `commit`. */
async function lock(t: TestContext, till: Till, { serialNumber }: Voucher) {
  const owner = await openOwner(till.testService.url);
  t.after(() => owner.close());
  await owner.query(sql`begin`);
  await owner.query(sql`select from scrip.vouchers where serial_number = ${serialNumber} for update`);
  return owner;
}

/** A modest day at a till: a few customers at a time. All that it asks for must be done. */
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
        const asked = [
          dialect.redeem(voucher, 1, reference),
          dialect.balance(voucher),
          dialect.lookup(reference),
        ];
        for (const each of asked) await till.done(each);
      }
    }),
  );
}

for (const dialect of DIALECTS) {
  // The flood asks for what cannot be answered now, so that the house is full without the machine being busy.
  test(`one merchant floods from ${STUCK} connections, and another is always answered, by ${dialect.name}`, async (t) => {
    // A connection that is made beside a flood may take longer on a busy machine than a till waits.
    const listening = await testService(t, undefined, { isPatient: true });
    const [flooding, modest] = [await Till.at(listening), await Till.at(listening)];
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

test('a full house refuses who filled it, at once, and has a place for who has few inside', async (t) => {
  const listening = await testService(t);
  const [flooding, known, fresh] = [
    await Till.at(listening),
    await Till.at(listening),
    await Till.at(listening),
  ];
  const voucher = await flooding.voucher(2_000);
  await known.done(A.list());
  const wires = await connections(t, flooding, STUCK);
  const owner = await lock(t, flooding, voucher);
  let refused = 0;
  const asked = wires.map(async (wire, number) => {
    const answer = await wire.ask(
      raw(flooding.merchant.authorization, B.redeem(voucher, 1, `sale-${number}`)),
    );
    if (answer.status === 503) refused++;
    return answer;
  });
  while (refused === 0) await Promise.race(asked);
  // Who filled it is refused, and who has nothing inside is not.
  await flooding.refused(A, '91', A.list());
  await Promise.all(Array.from({ length: 50 }, () => known.done(A.list())));
  await fresh.done(A.list());
  await flooding.refused(A, '91', A.list());
  await owner.query(sql`commit`);
  const answers = await Promise.all(asked);
  for (const { status, head, body } of answers) {
    const answer = JSON.parse(body.toString());
    assert.deepEqual([status, answer.statusCode], status === 503 ? [503, '91'] : [200, '00']);
    if (status !== 503) continue;
    assert.match(head, /\r\nretry-after: 1\r\n/i);
    assert.deepEqual(answer, { statusCode: '91', message: 'Service unavailable', data: null });
  }
  // Refused sales are sent again under their references. Each had no effect, or is a replay: on a busy
  // machine a call may reach its limit of time while it is being booked.
  for (const [number, { status }] of answers.entries())
    if (status === 503) await flooding.done(B.redeem(voucher, 1, `sale-${number}`));
  assert.equal(await flooding.balanceOf(voucher), 2_000 - STUCK);
  // It is over: nothing holds a place any more.
  await flooding.done(B.redeem(voucher, 1, 'afterwards'));
  for (const wire of wires) wire.close();
});

/** A request as far as the admission control looks at it. */
const requestOf = (authorization?: string) =>
  ({ headers: { authorization }, countedFor: undefined }) as unknown as FastifyRequest;
const merchantOf = (id: number) => ({ id }) as Merchant;
const isRefused = (error: unknown) =>
  error instanceof Refusal && error.code === '91' && error.retryAfterSeconds === 1;

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

test('requests that are not authenticated share one place, whatever their credentials', () => {
  const control = new AdmissionControl();
  const merchant = merchantOf(1);
  for (const known of admit(control, 1, 'Basic known', merchant)) control.leave(known);
  for (let guess = 0; guess < CONCURRENT_MAX; guess++) admit(control, 1, `Basic invented-${guess}`);
  assert.throws(() => admit(control, 1, 'Basic invented'), isRefused);
  // The merchant has half of the places, before it is authenticated and after.
  admit(control, CONCURRENT_MAX / 4, 'Basic known', merchant);
  admit(control, CONCURRENT_MAX / 4, 'Basic known');
  assert.throws(() => admit(control, 1, 'Basic known'), isRefused);
});

test('a full service admits a merchant up to its equal share, and every merchant once', () => {
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

test('a request that is over makes room, once', () => {
  const control = new AdmissionControl();
  const [first] = admit(control, CONCURRENT_MAX, 'Basic flood', merchantOf(1));
  assert.ok(first);
  control.leave(first);
  control.leave(first);
  admit(control, 1, 'Basic flood', merchantOf(1));
  assert.throws(() => admit(control, 1, 'Basic flood'), isRefused);
});

test('credentials that are refused are not taken for those of the merchant any more', () => {
  const control = new AdmissionControl();
  for (const request of admit(control, 1, 'Basic revoked', merchantOf(1))) control.leave(request);
  admit(control, CONCURRENT_MAX, 'Basic invented');
  const [request] = admit(control, 1, 'Basic revoked');
  control.forget(request ?? assert.fail());
  assert.throws(() => admit(control, 1, 'Basic revoked'), isRefused);
});
