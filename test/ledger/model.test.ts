import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { testService } from '../support/harness.ts';
import { linearize } from '../support/model.linearize.ts';
import { explained, reconciles } from '../support/model.run.ts';
import { Model } from '../support/model.ts';

/** `npm run soak -- model` runs the same for any length of time. */

describe('the answers of two processes', () => {
  for (const [manner, width, runs] of [
    ['sequential', 1, 12],
    ['concurrent', 6, 25],
  ] as const) {
    test(`to ${manner} calls are those of the model in some order`, async (t) => {
      const first = await testService(t);
      const second = await testService(t, first);
      await fc.assert(explained([first, second], width), { numRuns: runs, endOnFailure: true });
      await reconciles(first);
    });
  }
});

describe('the search for an order', () => {
  const generate = {
    do: 'generate',
    merchant: 0,
    reference: 'x',
    quantity: 1,
    amount: 25,
    product: 'DEFAULT',
    until: null,
  } as const;
  const data = (id: string) => ({
    transactionId: id,
    reference: 'x',
    status: 'COMPLETED',
    value: 25,
    expiryDate: '2099-01-01T00:00:00.000Z',
    vouchers: [{ serialNumber: 1 }],
  });
  const redeem = {
    do: 'redeem',
    merchant: 0,
    serial: '1',
    rightPin: true,
    amount: 20,
    reference: null,
  } as const;
  const done = (transactionId: string) => ({
    code: '00',
    replayed: false,
    data: { transactionId, transactionType: 'REDEMPTION', amount: 20, serialNumber: '1', reference: null },
  });
  const refused = (code: string) => ({ code, replayed: false, data: null });

  test('finds an order if one explains the answers, and none otherwise', () => {
    const [start] = linearize(
      [new Model()],
      [{ call: generate, answer: { code: '00', replayed: false, data: data('a') } }],
      0,
    );
    assert.ok(start);
    const both = (one: object, other: object) =>
      linearize(
        [start],
        [one, other].map((answer) => ({ call: redeem, answer: answer as never })),
        0,
      ).length;
    assert.equal(both(refused('51'), done('b')), 1);
    assert.equal(both(done('b'), refused('51')), 1);
    assert.equal(both(done('b'), done('c')), 0);
    assert.equal(both(refused('51'), refused('51')), 0);
    assert.equal(both(done('b'), refused('42')), 0);
  });

  test('distinguishes a replay from a second effect', () => {
    const first = { code: '00', replayed: false, data: data('a') };
    const second = (id: string, replayed: boolean) => ({ code: '00', replayed, data: data(id) });
    const orders = (answer: ReturnType<typeof second>) =>
      linearize(
        [new Model()],
        [first, answer].map((each) => ({ call: generate, answer: each })),
        0,
      ).length;
    assert.equal(orders(second('a', true)), 1);
    assert.equal(orders(second('b', true)), 0);
    assert.equal(orders(second('b', false)), 0);
  });
});
