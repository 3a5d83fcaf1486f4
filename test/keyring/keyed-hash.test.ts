import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import { KeyedHash } from '../../src/keyring/sealed.ts';

const bytes = fc.uint8Array({ minLength: 0, maxLength: 64 }).map((array) => Buffer.from(array));
const latin = fc.string({
  unit: fc.integer({ min: 0, max: 255 }).map((code) => String.fromCharCode(code)),
  maxLength: 64,
});

test('a keyed hash is HMAC-SHA-256, with every key and for each text in turn', () => {
  fc.assert(
    fc.property(bytes, fc.array(latin, { minLength: 1, maxLength: 5 }), (key, texts) => {
      const keyed = new KeyedHash(key);
      for (const text of texts)
        assert.equal(keyed.of(text), createHmac('sha256', key).update(text, 'latin1').digest('hex'));
    }),
    { examples: [[Buffer.alloc(64, 0xa5), ['x'.repeat(64), '', '123456789012:1234']]] },
  );
});

test('a text that is too long is refused, not truncated', () => {
  const keyed = new KeyedHash(Buffer.alloc(32, 1));
  assert.throws(() => keyed.of('x'.repeat(65)), RangeError);
});
