import assert from 'node:assert/strict';
import type { LookupAddress } from 'node:dns';
import { test } from 'node:test';
import { isPublic, type Resolve, readEndpointUrl } from '../../src/webhooks/address.ts';
import { createSender } from '../../src/webhooks/send.ts';
import { Receiver } from '../support/receiver.ts';

const refuses = (url: string, expected: RegExp) =>
  assert.throws(() => readEndpointUrl(url, false), expected, url);

test('private, reserved and invalid addresses are not public', () => {
  const open = [
    '93.184.215.14',
    '8.8.8.8',
    '1.1.1.1',
    '2606:2800:21f:cb07:6820:80da:af6b:8b2c',
    '2a00:1450:4001:800::200e',
  ];
  assert.deepEqual(open.filter(isPublic), open);
  const closed = [
    '0.0.0.0',
    '0.1.2.3',
    '10.0.0.1',
    '100.64.0.1',
    '127.0.0.1',
    '127.255.255.254',
    '169.254.169.254',
    '172.16.0.1',
    '172.31.255.255',
    '192.0.0.1',
    '192.0.2.1',
    '192.168.1.1',
    '198.18.0.1',
    '198.51.100.7',
    '203.0.113.9',
    '224.0.0.1',
    '240.0.0.1',
    '255.255.255.255',
    '::',
    '::1',
    '::127.0.0.1',
    '::ffff:127.0.0.1',
    '::ffff:10.0.0.1',
    '::ffff:8.8.8.8',
    '::ffff:0:127.0.0.1',
    '64:ff9b::7f00:1',
    '64:ff9b:1::a00:1',
    '2002:7f00:1::',
    '2002:0a00:0001::1',
    '2001::1',
    '2001:db8::1',
    'fe80::1',
    'fe80::1%eth0',
    'fec0::1',
    'fc00::1',
    'fd12:3456::1',
    'ff02::1',
    '100::1',
    'localhost',
    '',
    '1.2.3',
  ];
  assert.deepEqual(closed.filter(isPublic), []);
});

test('a private address is refused in every spelling', () => {
  for (const host of [
    '127.0.0.1',
    '127.1',
    '2130706433',
    '0x7f000001',
    '0x7f.1',
    '0177.0.0.1',
    '017700000001',
    '127.0.0.1.',
    '0',
    '10.1',
    '[::1]',
    '[::ffff:127.0.0.1]',
    '[::ffff:7f00:1]',
    '[0:0:0:0:0:ffff:a9fe:a9fe]',
    '[64:ff9b::7f00:1]',
    '[2002:7f00:1::]',
    '[fe80::1]',
    '①②⑦.⓪.⓪.①',
    '169.254.169.254',
    '127。0。0。1',
    '%31%32%37.0.0.1',
  ])
    refuses(`https://${host}/`, /is not a public address/);
  for (const host of [
    'localhost',
    'LOCALHOST',
    'localhost.',
    'db',
    'a.localhost',
    'printer.local',
    'vault.internal',
    'x.home.arpa',
  ])
    refuses(`https://${host}/`, /is not a public address/);
});

test('a URL that is not plain HTTPS is refused with the reason', () => {
  refuses('http://example.com/', /https addresses only/);
  refuses('ftp://example.com/', /https addresses only/);
  refuses('file:///etc/passwd', /https addresses only/);
  refuses('javascript:alert(1)', /https addresses only/);
  refuses('https://user@example.com/', /user name or password/);
  refuses('https://user:secret@example.com/', /user name or password/);
  refuses('https://example.com@127.0.0.1/', /user name or password/);
  refuses('https://example.com/#x', /fragment/);
  refuses('https://example.com:22/', /port 22/);
  refuses('https://example.com:80/', /port 80/);
  refuses('https://example.com:0/', /port 0/);
  refuses('https://', /the URL is none/);
  refuses('example.com', /the URL is none/);
  refuses(`https://example.com/${'x'.repeat(2_000)}`, /longer than 2000/);
  for (const url of [
    'https://example.com/hook?a=b',
    'https://example.com:8443/',
    'https://xn--bcher-kva.example/',
    'https://8.8.8.8/',
  ])
    assert.equal(readEndpointUrl(url, false).href, url);
});

test('HTTP and private addresses are permitted for development, and nothing else', () => {
  assert.equal(readEndpointUrl('http://127.0.0.1:3000/hook', true).port, '3000');
  assert.throws(() => readEndpointUrl('http://user@127.0.0.1/', true));
  assert.throws(() => readEndpointUrl('ftp://127.0.0.1/', true));
});

/** A resolver that returns one list of addresses after the other, and records the names. */
function resolving(...answers: string[][]) {
  const names: string[] = [];
  const resolve: Resolve = (host, _options, done) => {
    const addresses = answers[Math.min(names.length, answers.length - 1)] ?? [];
    names.push(host);
    done(
      null,
      addresses.map((address): LookupAddress => ({ address, family: address.includes(':') ? 6 : 4 })),
    );
  };
  return { names, resolve };
}

async function sendTo(url: string, resolve: Resolve) {
  const sender = createSender({ allowPrivate: false, clock: () => new Date(), timeoutMs: 2_000, resolve });
  const attempt = await sender.send({ url, headers: {}, body: '{}' });
  await sender.close();
  return attempt;
}

test('a host name that resolves to a private address, alone or among others, is not called', async (t) => {
  const receiver = await Receiver.start();
  t.after(() => receiver.stop());
  const { port } = new URL(receiver.url);
  for (const addresses of [
    ['127.0.0.1'],
    ['8.8.8.8', '127.0.0.1'],
    ['::1'],
    ['::ffff:127.0.0.1'],
    ['2002:7f00:1::'],
  ]) {
    const { names, resolve } = resolving(addresses);
    const { status, error } = await sendTo(`https://rebind.example:${port}/`, resolve);
    assert.deepEqual([status, error], [null, 'rebind.example resolves to an address that is not public']);
    assert.deepEqual(names, ['rebind.example']);
  }
  assert.equal(receiver.connections, 0);
});

test('the checked address is called, without another lookup of the name', async (t) => {
  const receiver = await Receiver.start();
  t.after(() => receiver.stop());
  const { port } = new URL(receiver.url);
  // 192.88.99.x would be refused; this one is public and leads nowhere from here. A second answer would
  // be loopback.
  const { names, resolve } = resolving(['8.8.8.8'], ['127.0.0.1']);
  const { status } = await sendTo(`https://rebind.example:${port}/`, resolve);
  assert.equal(status, null);
  assert.deepEqual(names, ['rebind.example']);
  assert.equal(receiver.connections, 0);
});

test('a literal private address is not called, even if it passed the check of the endpoint', async (t) => {
  const receiver = await Receiver.start();
  t.after(() => receiver.stop());
  const { port } = new URL(receiver.url);
  const { resolve } = resolving(['8.8.8.8']);
  for (const host of ['127.0.0.1', '[::ffff:127.0.0.1]', '0x7f.1']) {
    const { status, error } = await sendTo(`https://${host}:${port}/`, resolve);
    assert.equal(status, null);
    assert.match(error ?? '', /is not a public address/);
  }
  assert.equal(receiver.connections, 0);
});
