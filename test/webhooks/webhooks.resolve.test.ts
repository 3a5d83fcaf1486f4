import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import type { LookupAddress } from 'node:dns';
import { once } from 'node:events';
import { type TestContext, test } from 'node:test';
import { guardedLookup, resolverOf } from '../../src/webhooks/address.ts';

/** The answers of a name server: addresses by family, or none at all. */
type Zone = Readonly<Record<string, { readonly 4?: string; readonly 6?: number[] } | 'silent'>>;

const A = 1;
const HEADER_BYTES = 12;

/** Starts a name server. Names that are not in its zone do not exist. */
async function serveNames(t: TestContext, zone: Zone) {
  const socket = createSocket('udp4');
  t.after(() => socket.close());
  const names: string[] = [];
  socket.on('message', (query, from) => {
    const labels: string[] = [];
    let at = HEADER_BYTES;
    for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
      labels.push(query.toString('latin1', at + 1, at + 1 + length));
      at += 1 + length;
    }
    const name = labels.join('.');
    names.push(name);
    const entry = zone[name];
    if (entry === 'silent') return;
    const type = query.readUInt16BE(at + 1);
    const address = type === A ? entry?.[4]?.split('.').map(Number) : entry?.[6];
    const count = address ? 1 : 0;
    const head = Buffer.from([
      query[0] ?? 0,
      query[1] ?? 0,
      0x81,
      entry ? 0x80 : 0x83,
      0,
      1,
      0,
      count,
      0,
      0,
      0,
      0,
    ]);
    const record = address
      ? [0xc0, HEADER_BYTES, 0, type, 0, 1, 0, 0, 0, 60, 0, address.length, ...address]
      : [];
    socket.send(
      Buffer.concat([head, query.subarray(HEADER_BYTES, at + 5), Buffer.from(record)]),
      from.port,
      from.address,
    );
  });
  await once(socket.bind(0, '127.0.0.1'), 'listening');
  const lookup = guardedLookup(false, resolverOf([`127.0.0.1:${socket.address().port}`]));
  const resolve = (name: string) =>
    new Promise<LookupAddress[] | NodeJS.ErrnoException>((done) => {
      lookup(name, { all: true }, (error, found) => done(error ?? (found as LookupAddress[])));
    });
  return { names, resolve };
}

const LOOPBACK6 = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
const PUBLIC6 = [0x26, 0x06, 0x28, 0, 0x02, 0x20, 0, 1, 2, 0x48, 0x18, 0x93, 0x25, 0xc8, 0x19, 0x46];

test('a name is resolved to addresses of both families, all of which must be public', async (t) => {
  const { resolve } = await serveNames(t, {
    'both.example': { 4: '8.8.8.8', 6: PUBLIC6 },
    'one.example': { 4: '8.8.4.4' },
    'six.example': { 6: PUBLIC6 },
    'mixed.example': { 4: '8.8.8.8', 6: LOOPBACK6 },
    'private.example': { 4: '10.0.0.1' },
    'empty.example': {},
  });
  const six = { address: '2606:2800:220:1:248:1893:25c8:1946', family: 6 };
  assert.deepEqual(await resolve('both.example'), [{ address: '8.8.8.8', family: 4 }, six]);
  assert.deepEqual(await resolve('one.example'), [{ address: '8.8.4.4', family: 4 }]);
  assert.deepEqual(await resolve('six.example'), [six]);
  for (const name of ['mixed.example', 'private.example'])
    assert.match(String(await resolve(name)), /resolves to an address that is not public/);
  for (const name of ['empty.example', 'unknown.example'])
    assert.equal(((await resolve(name)) as NodeJS.ErrnoException).code, 'ENOTFOUND');
});

test('names without an answer do not delay other names', async (t) => {
  const { names, resolve } = await serveNames(t, {
    'dead.example': 'silent',
    'good.example': { 4: '8.8.8.8' },
  });
  let ended = 0;
  const dead = Array.from({ length: 64 }, () => resolve('dead.example').finally(() => ended++));
  while (!names.includes('dead.example')) await new Promise(setImmediate);
  assert.deepEqual(await resolve('good.example'), [{ address: '8.8.8.8', family: 4 }]);
  assert.equal(ended, 0);
  const errors = (await Promise.all(dead)) as NodeJS.ErrnoException[];
  assert.ok(errors.every(({ code }) => code === 'EAI_AGAIN'));
});
