import assert from 'node:assert/strict';
import { test } from 'node:test';
import { addressOf, couldBeSecret, parametersOf } from '../../console/src/ui/views.ts';

test('a view has one address, in whatever order its filters were set, without what is no filter', () => {
  const names = ['tab', 'state', 'product', 'columns'];
  const search = { state: 'ACTIVE', product: 'A & B', columns: 'balance,state', text: 'typed', tab: '' };
  const reversed = Object.fromEntries(Object.entries(search).reverse());
  const address = '/vouchers?columns=balance%2Cstate&product=A+%26+B&state=ACTIVE';
  assert.equal(addressOf('/vouchers', search, names), address);
  assert.equal(addressOf('/vouchers', reversed, names.toReversed()), address);
  assert.equal(addressOf('/vouchers', parametersOf(address), names), address);
  assert.equal(addressOf('/vouchers', {}, names), '/vouchers');
});

test('what could be a code or a token is not saved', () => {
  const secrets = [
    '482913057641',
    '4829 1305 7641',
    '4829130576410731',
    '082913057641',
    'Anna 4829-1305-7641',
    'scrop_abcdefghijklmnop',
  ];
  for (const text of secrets) assert.ok(couldBeSecret(text), text);
  const others = [
    '10000000173',
    '4829****7641',
    'order-10071',
    '2026-11-28',
    '7-2026-0004',
    '0198c1d2-1234-7123-8123-123456789012',
    'scrop_abcd',
    'ACTIVE',
    '',
  ];
  for (const text of others) assert.ok(!couldBeSecret(text), text);
});
