import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { Wire } from '../bench/wire.ts';
import { openOwner } from '../src/db/pool.ts';
import { sql } from '../src/db/sql.ts';
import { type Asked, DIALECTS, type Voucher } from './dialects.ts';
import { testService } from './harness.ts';
import { Till } from './till.ts';

/** Who is refused: not those who are few, and one who floods, but no other. */

const [A, B] = DIALECTS;
assert.ok(A && B);
/** A few more than are never refused. */
const FLOODING = 420;
const FEW = 300;
/** More than a burst, so that some of them are refused while none is answered. */
const STUCK = 1_100;

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

/** Asks over each connection, and again as soon as it is answered, until it is stopped; then tells how often each status came. */
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
async function serve(till: Till, dialect: (typeof DIALECTS)[number], day: string, sales: number): Promise<void> {
  const vouchers = await till.vouchers(4);
  await Promise.all(
    vouchers.map(async (voucher, customer) => {
      for (let sale = 1; sale <= sales; sale++) {
        const reference = `${day}-${customer}-${sale}`;
        const asked = [dialect.redeem(voucher, 1, reference), dialect.balance(voucher), dialect.lookup(reference)];
        for (const each of asked) await till.done(each);
      }
    }),
  );
}

/** Opens the connections to the database: one that is made beside a flood, on a busy machine, could be late, and be told as 503 too. */
const warmUp = (till: Till) =>
  Promise.all(DIALECTS.map((dialect) => serve(till, dialect, `before-${dialect.name}`, 1)));

for (const dialect of DIALECTS) {
  // The flood asks for what cannot be answered now, so that the house is full without the machine being busy.
  test(`one merchant floods from ${STUCK} connections, and another is always answered, by ${dialect.name}`, async (t) => {
    const listening = await testService(t);
    const [flooding, modest] = [await Till.at(listening), await Till.at(listening)];
    const voucher = await flooding.voucher(null);
    await warmUp(flooding);
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

test('so few connections as bound themselves are never refused', async (t) => {
  const till = await Till.open(t);
  const vouchers = await till.vouchers(10, 1_000);
  const wires = await connections(t, till, FEW);
  const statuses = await Promise.all(
    wires.map(async (wire, customer) => {
      const seen: number[] = [];
      for (let sale = 1; sale <= 8; sale++) {
        const voucher = vouchers[customer % vouchers.length] ?? assert.fail();
        const request = raw(till.merchant.authorization, B.redeem(voucher, 0.01, `sale-${customer}-${sale}`));
        seen.push((await wire.ask(request)).status);
      }
      wire.close();
      return seen;
    }),
  );
  assert.deepEqual([...new Set(statuses.flat())], [200]);
});

test('invented credentials, and wrong secrets of a key in use, take no place from the merchant whose key it is', async (t) => {
  const till = await Till.open(t);
  const { keyId } = till.merchant;
  await warmUp(till);
  let guess = 0;
  const stop = await flood(t, till, FLOODING, () => {
    guess++;
    return raw(
      `Basic ${btoa(`${guess % 2 === 0 ? keyId : `key_invented${String(guess).padStart(8, '0')}`}:wrong-${guess}`)}`,
      A.list(),
    );
  });
  await serve(till, A, 'beside', 6);
  assert.deepEqual([...(await stop()).keys()].sort(), [401, 503]);
});

test('a full house has a place for who has few inside, known or new, and none for who filled it', async (t) => {
  const listening = await testService(t);
  const [flooding, known, fresh] = [await Till.at(listening), await Till.at(listening), await Till.at(listening)];
  const voucher = await flooding.voucher(2_000);
  await known.done(A.list());
  const wires = await connections(t, flooding, STUCK);
  const owner = await lock(t, flooding, voucher);
  let refused = 0;
  const asked = wires.map(async (wire, number) => {
    const answer = await wire.ask(raw(flooding.merchant.authorization, B.redeem(voucher, 1, `sale-${number}`)));
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
  for (const { status, head } of answers) {
    if (status === 503) assert.match(head, /\r\nretry-after: 1\r\n/i);
    else assert.equal(status, 200);
  }
  assert.equal(await flooding.balanceOf(voucher), 2_000 - (STUCK - refused));
  for (const wire of wires) wire.close();
});
