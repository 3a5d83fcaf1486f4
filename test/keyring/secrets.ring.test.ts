import assert from 'node:assert/strict';
import { createHash, createHmac, hkdfSync, timingSafeEqual } from 'node:crypto';
import { describe, test } from 'node:test';
import {
  hashSecret,
  isKeyId,
  newKeyId,
  newSecret,
  newWebhookSecret,
  randomCode,
  randomPin,
  sameHash,
} from '../../src/credentials.ts';
import { newRingKey, readKeyRing, refuseKeyRing } from '../../src/keyring/file.ts';
import { sealedUnder } from '../../src/keyring/ring.ts';

const CODE = '123456789012';
const PIN = '0042';
const keyOf = (byte: number) => Buffer.alloc(32, byte).toString('base64url');
const OLD = `old:${keyOf(1)}`;
const NEW = `new-key:${keyOf(2)}`;
const read = (text: string, reload?: () => string) => readKeyRing(text, 'SCRIP_KEYS', reload);
const fails = (text: string, message: RegExp) =>
  assert.throws(() => read(text), { name: 'StartError', message });
const derived = (byte: number, purpose: string) =>
  Buffer.from(hkdfSync('sha256', Buffer.alloc(32, byte), '', `scrip ${purpose}`, 32));
const under = (byte: number, purpose: string, text: string) =>
  createHmac('sha256', derived(byte, purpose)).update(text).digest('hex').slice(0, 32);
const codeUnder = (byte: number, code: string) =>
  under(byte, 'mask', code.slice(0, 4) + code.slice(8)).slice(0, 8) +
  under(byte, 'lookup', code).slice(0, 24);

describe('sealed data', () => {
  const ring = read(`k1:${keyOf(7)}`);

  test('is found and opened with a recorded key', () => {
    assert.equal(ring.codeKey(CODE), 'f3932446bbf38771bbbf6141cff36d31');
    assert.equal(ring.pinKey(CODE, PIN), '865174d2557868d39a594f62697e388c');
    const check = '0419518598c4b28ba9a281eb46ab6981d992618ddca86a9d608b3a9c718ed96d';
    assert.deepEqual(ring.checks(), [{ keyId: 'k1', check: Buffer.from(check, 'hex') }]);
    const sealed =
      '026b31a6f21b4b173e1b9f8097e7a5bf3ba2910b1ab957b72d1d4837ad26afa5b56b734f9aa5cc963f9b43ccb143d2';
    assert.deepEqual(ring.open(77n, Buffer.from(sealed, 'hex')), { code: CODE, pin: PIN });
  });

  test('cannot be opened for another voucher, with another key, or with a changed bit', () => {
    const sealed = ring.seal(77n, CODE, PIN);
    assert.deepEqual(ring.open(77n, sealed), { code: CODE, pin: PIN });
    assert.throws(() => ring.open(78n, sealed));
    for (let at = 0; at < sealed.length; at++) {
      const changed = Buffer.from(sealed);
      changed[at] = (changed[at] as number) ^ 1;
      assert.throws(() => ring.open(77n, changed), `byte ${at}`);
    }
    assert.throws(() => read(`k1:${keyOf(8)}`).open(77n, sealed));
    const text = ring.sealText('endpoint 5', 'whsec_é');
    assert.equal(ring.openText('endpoint 5', text), 'whsec_é');
    assert.throws(() => ring.openText('endpoint 6', text));
  });

  test('has a new nonce each time', () => {
    const sealed = Array.from({ length: 1000 }, () => ring.seal(77n, CODE, PIN));
    assert.equal(new Set(sealed.map((each) => each.subarray(3, 15).toString('hex'))).size, sealed.length);
    for (const each of sealed) assert.equal(each.length, 1 + 2 + 12 + 16 + 16);
  });

  test('has its code among those of its masked form, and hardly any other', () => {
    const isIn = (code: string, [range]: ReturnType<typeof ring.rangesOfMask>) =>
      range !== undefined && range.first <= ring.codeKey(code) && ring.codeKey(code) <= range.last;
    const own = ring.rangesOfMask(CODE.slice(0, 4) + CODE.slice(8));
    assert.ok(isIn(CODE, own) && isIn(`${CODE.slice(0, 4)}0000${CODE.slice(8)}`, own));
    assert.ok(!isIn(`0${CODE.slice(1)}`, own) && !isIn(`${CODE.slice(0, 11)}0`, own));
    const two = read(`${NEW},${OLD}`);
    two.use(['old', 'new-key']);
    assert.deepEqual(
      two.rangesOfMask('12349012').map(({ first, last }) => [first, last]),
      [1, 2].map((byte) => {
        const prefix = under(byte, 'mask', '12349012').slice(0, 8);
        return [`${prefix}${'0'.repeat(24)}`, `${prefix}${'f'.repeat(24)}`];
      }),
    );
  });

  test('names the key that sealed it', () => {
    assert.equal(sealedUnder(ring.seal(1n, CODE, PIN)), 'k1');
    assert.equal(sealedUnder(read(NEW).seal(1n, CODE, PIN)), 'new-key');
    assert.equal(sealedUnder(Buffer.alloc(0)), '');
  });

  test('is looked up by HMACs under derived keys', () => {
    assert.equal(ring.codeKey(CODE), codeUnder(7, CODE));
    assert.equal(ring.pinKey(CODE, PIN), under(7, 'pin', `${CODE}:${PIN}`));
    assert.notEqual(ring.pinKey(CODE, PIN), ring.pinKey('123456789013', PIN));
  });
});

describe('a key ring', () => {
  test('is read from entries that commas or line ends separate, with blanks around them', () => {
    const ids = (text: string) =>
      read(text)
        .checks()
        .map(({ keyId }) => keyId);
    assert.deepEqual(ids(`${NEW},${OLD}`), ['new-key', 'old']);
    assert.deepEqual(ids(`\n  ${NEW} \r\n\n ${OLD},\n`), ['new-key', 'old']);
    assert.deepEqual(ids(`A-z_0123456789AB:${Buffer.alloc(32, 255).toString('base64')}`), [
      'A-z_0123456789AB',
    ]);
  });

  test('is refused if it is invalid, with a message that contains none of it', () => {
    assert.equal(refuseKeyRing(`${NEW},${OLD}`), undefined);
    assert.equal(refuseKeyRing(''), 'contains no key');
    assert.match(refuseKeyRing('nonsense') ?? '', /^is not a key ring/);
    fails('', /^SCRIP_KEYS contains no key$/);
    fails(' , \n', /^SCRIP_KEYS contains no key$/);
    fails(`${OLD},${OLD.slice(0, 4)}${keyOf(3)}`, /^SCRIP_KEYS names a key twice$/);
    fails(`${OLD},routing:${keyOf(3)},routing:${keyOf(4)}`, /^SCRIP_KEYS names a key twice$/);
    fails(`${NEW},another:${NEW.slice(NEW.indexOf(':') + 1)}`, /^SCRIP_KEYS holds one key under two names$/);
    const key = keyOf(1);
    const broken = [
      'nonsense',
      key,
      `:${key}`,
      `id:`,
      `id ${key}`,
      `id:${key} x`,
      `x id:${key}`,
      `${'i'.repeat(17)}:${key}`,
    ];
    const wrong = [
      `i.d:${key}`,
      `id:${key}!`,
      `id:${Buffer.alloc(31).toString('base64url')}`,
      `id:${Buffer.alloc(33).toString('base64url')}`,
    ];
    for (const text of [...broken, ...wrong]) {
      fails(text, /^SCRIP_KEYS is not a key ring: it takes "id:key" entries/);
      fails(`${OLD},${text}`, /^SCRIP_KEYS is not a key ring/);
      assert.throws(
        () => read(text),
        (error: Error) => !error.message.includes(key),
      );
    }
  });

  test('seals with its first key until the keys in use are set', () => {
    const ring = read(`${NEW},${OLD}`);
    assert.equal(ring.current, 'new-key');
    assert.deepEqual(
      ring.inUse.map(({ id }) => id),
      ['new-key'],
    );
    assert.deepEqual(ring.olderCodeKeys(CODE), []);
    assert.equal(sealedUnder(ring.seal(1n, CODE, PIN)), 'new-key');
    // It opens what any of its keys has sealed.
    assert.deepEqual(ring.open(1n, read(OLD).seal(1n, CODE, PIN)), { code: CODE, pin: PIN });
  });

  test('seals with the newest key in use, and looks up under each of them, oldest first', () => {
    const ring = read(`${NEW},${OLD}`);
    ring.use(['old', 'new-key']);
    assert.equal(ring.current, 'new-key');
    assert.deepEqual(ring.lookUps({ code: CODE, pin: PIN }), [
      { codeKey: codeUnder(1, CODE), pinKey: under(1, 'pin', `${CODE}:${PIN}`) },
      { codeKey: codeUnder(2, CODE), pinKey: under(2, 'pin', `${CODE}:${PIN}`) },
    ]);
    assert.deepEqual(ring.olderCodeKeys(CODE), [codeUnder(1, CODE)]);
    ring.use(['old']);
    assert.equal(ring.current, 'old');
    assert.equal(ring.codeKey(CODE), codeUnder(1, CODE));
    ring.use(['new-key']);
    assert.equal(ring.codeKey(CODE), codeUnder(2, CODE));
  });

  test('keeps the list of keys in use as long as nothing changes', () => {
    const ring = read(`${NEW},${OLD}`);
    ring.use(['old', 'new-key']);
    const { inUse } = ring;
    ring.use(['old', 'new-key']);
    assert.equal(ring.inUse, inUse);
    ring.use(['new-key', 'old']);
    assert.notEqual(ring.inUse, inUse);
    assert.equal(ring.current, 'old');
  });

  test('replaces the list of keys in use by another one of the same length', () => {
    const ring = read(`third:${keyOf(3)},${NEW},${OLD}`);
    ring.use(['old', 'new-key']);
    ring.use(['old', 'third']);
    assert.equal(ring.current, 'third');
    ring.use(['new-key', 'third']);
    assert.deepEqual(ring.olderCodeKeys(CODE), [codeUnder(2, CODE)]);
  });

  test('changes nothing if a key in use is missing', () => {
    const ring = read(`${NEW},${OLD}`);
    assert.throws(() => ring.use(['old', 'unknown']), {
      code: 'EKEYMISSING',
      message: /^what is looked up .*"unknown"/,
    });
    assert.deepEqual([ring.current, ring.inUse.length], ['new-key', 1]);
  });

  test('is read again only if a key is missing', () => {
    let reads = 0;
    const ring = read(OLD, () => {
      reads++;
      return `${NEW},${OLD}`;
    });
    assert.equal(ring.holds('old'), true);
    assert.equal(reads, 0);
    assert.equal(ring.holds('new-key'), true);
    assert.equal(reads, 1);
    assert.equal(ring.holds('unknown'), false);
    assert.equal(reads, 2);
    assert.equal(read(OLD).holds('new-key'), false);
    assert.throws(() => read(OLD).open(1n, read(NEW).seal(1n, CODE, PIN)), {
      code: 'EKEYMISSING',
      message: /^what belongs to 1 .*"new-key"/,
    });
  });

  test('routes each code, and hashes texts that it must find again, as it always has', () => {
    // The entry of the routing key may be anywhere.
    const routed = read(`routing:${keyOf(9)},k1:${keyOf(7)}`);
    assert.deepEqual(
      ['123456789012', '482913057641', '999999999999'].map((code) => routed.slotOf(code)),
      [29, 19, 16],
    );
    const check = '12806f56ee240cf8ac547cb39a74c0ee3b4c2c1242a6a5f644dfc4fd5eac7106';
    assert.equal(Buffer.from(routed.routingCheck).toString('hex'), check);
    const fingerprint = '67cf43faca175300b49a5dff8fe45f1c37dbc6900f4ba5bf333860b3ebac51eb';
    assert.equal(routed.fingerprintOf('text').toString('hex'), fingerprint);
  });

  test('signs with the newest key, and verifies under the key that the tag names', () => {
    const recorded = read(`k1:${keyOf(7)}`);
    assert.equal(recorded.sign('text'), 'k1.SxRreMzjnnlfAv-Xw6vK4Q36wlJjZy1AsyJVC1cilg8');
    const [signer] = recorded.signers();
    assert.equal(
      signer?.publicKey.toString('hex'),
      '9a24233d7e673b0acae965a1ca915b386935df29ddadceed6a80a9b8faefc5c3',
    );
    assert.equal(signer?.sign('text').toString('hex').slice(0, 32), 'aff2bf636c3f3b1f852e84b9a55f0c0c');
    const tag = read(OLD).sign('text');
    const rotated = read(`${NEW},${OLD}`);
    assert.match(rotated.sign('text'), /^new-key\./);
    assert.equal(rotated.verify('text', tag), 'authentic');
    assert.equal(rotated.verify('text', rotated.sign('text')), 'authentic');
    for (const [text, changed] of [
      ['texts', tag],
      ['text', tag.replace('old.', 'new-key.')],
    ] as const)
      assert.equal(rotated.verify(text, changed), 'changed');
    assert.equal(read(NEW).verify('text', tag), 'unknown key');
  });

  test('shares only the current key and the routing key with a thread', () => {
    const ring = read(`${NEW},${OLD}`);
    const [[shared, ...others], routing] = ring.share();
    assert.deepEqual(others, []);
    assert.deepEqual(Buffer.from(routing), derived(1, 'routing'));
    assert.deepEqual([shared?.id, Buffer.from(shared?.master ?? [])], ['new-key', Buffer.alloc(32, 2)]);
    assert.deepEqual(Object.keys(shared ?? {}).sort(), ['check', 'id', 'master', 'seal']);
    assert.deepEqual(Buffer.from(shared?.check ?? []), derived(2, 'check'));
    assert.deepEqual(shared?.seal.export(), derived(2, 'seal'));
    ring.use(['old', 'new-key']);
    ring.use(['old']);
    assert.equal(ring.share()[0][0]?.id, 'old');
  });
});

describe('a new credential', () => {
  test('for a key ring is a key whose ID begins with the time', () => {
    const before = Math.floor(Date.now() / 1000);
    const [id = '', key = ''] = newRingKey().split(':');
    const seconds = Number.parseInt(id.slice(1, 7), 36);
    assert.ok(seconds >= before && seconds <= Math.ceil(Date.now() / 1000));
    assert.match(id, /^k[0-9a-z]{6}[0-9a-f]{6}$/);
    assert.equal(Buffer.from(key, 'base64url').length, 32);
    assert.equal(read(`${newRingKey()},${newRingKey()}`).checks().length, 2);
  });

  test('for a voucher is a code of twelve digits, the first not 0, and a PIN of four', () => {
    const codes = Array.from({ length: 3000 }, randomCode);
    for (const code of codes) assert.match(code, /^[1-9]\d{11}$/);
    assert.equal(new Set(codes.map((code) => code[0])).size, 9);
    const pins = Array.from({ length: 3000 }, randomPin);
    for (const pin of pins) assert.match(pin, /^\d{4}$/);
    assert.equal(new Set(pins.map((pin) => pin[0])).size, 10);
    assert.equal(new Set(pins.map((pin) => pin[3])).size, 10);
  });

  test('for an API key or a webhook is a secret of 256 bits', () => {
    assert.match(newSecret(), /^[\w-]{43}$/);
    assert.match(newWebhookSecret(), /^whsec_[A-Za-z0-9+/]{43}=$/);
    for (let times = 0; times < 200; times++) {
      assert.match(newKeyId(), /^key_[A-Za-z0-9]{16}$/);
      assert.ok(isKeyId(newKeyId()));
    }
    const others = [
      '',
      'key_',
      'key_482913057641',
      'key_4829130576410731',
      `key_${newSecret()}`,
      newSecret(),
      `${newKeyId()}\n`,
    ];
    for (const other of others) assert.equal(isKeyId(other), false, other);
    for (const draw of [newSecret, newWebhookSecret, newKeyId, newRingKey]) assert.notEqual(draw(), draw());
  });
});

test('a secret is stored as its SHA-256, and only equal hashes compare as equal', () => {
  assert.deepEqual(hashSecret('a secret'), createHash('sha256').update('a secret').digest());
  assert.ok(timingSafeEqual(hashSecret('a'), hashSecret('a')));
  assert.equal(sameHash(hashSecret('a'), hashSecret('a')), true);
  assert.equal(sameHash(hashSecret('a'), hashSecret('b')), false);
  assert.equal(sameHash(hashSecret('a'), hashSecret('a').subarray(1)), false);
});
