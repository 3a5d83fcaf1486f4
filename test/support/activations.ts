import assert from 'node:assert/strict';
import { before } from 'node:test';
import type { Context } from '../../src/context.ts';
import { plainArray, textArray } from '../../src/db/sql.ts';
import { ACTIVATE } from '../../src/vouchers/activate.ts';
import { Bench, BUCKET, type Card } from './statement.ts';

/** By code and PIN, or by serial number; `value` in ten-thousandths of a major unit. */
export type Activation = {
  readonly by: Context;
  readonly card?: Card;
  readonly serial?: bigint;
  readonly value?: number;
  readonly reference?: string;
  readonly id?: string;
  readonly lowId?: string;
  /** Over shards: whether the float does not cover it. */
  readonly isUnfunded?: boolean;
};
type Row = {
  ord: number;
  outcome: string;
  id: string | null;
  occurred_at: Date | null;
  serial_number: bigint | null;
  amount_minor: bigint | null;
  sealed: Buffer | null;
};

/** Calls the function of activations, on a bench with products of several terms. */
export function activations() {
  const bench = Bench.ofTests();
  before(async () => {
    await bench.product('LATER', 'USD', 2, { activation: 'on-activation' });
    await bench.product('LIMITS', 'USD', 2, { minValue: 500n, maxValue: 5000n });
    await bench.product('MOST', 'USD', 2, { maxValue: 500_000n });
    await bench.product('OWN', 'USD', 2, { scope: 'issuer' });
    await bench.product('DINAR', 'KWD', 3);
    await bench.product('DINAR_LATER', 'KWD', 3, { activation: 'on-activation' });
  });

  /** @param isClaimed whether the ids are those of claims that were made before, as over shards */
  async function rowsOf(wanted: readonly Activation[], now = bench.now, isClaimed = false): Promise<Row[]> {
    const rows = await bench.hot<Row>(ACTIVATE, [
      BUCKET,
      plainArray(wanted.map(({ by }) => by.merchant.id)),
      plainArray(wanted.map(({ by }) => by.keyId)),
      plainArray(wanted.map(({ card }) => card?.codeKey ?? null)),
      plainArray(wanted.map(({ card }) => card?.pinKey ?? null)),
      plainArray(wanted.map(({ serial }) => serial ?? null)),
      plainArray(wanted.map(({ value }) => value ?? null)),
      textArray(wanted.map(({ reference }) => reference ?? null)),
      plainArray(wanted.map(({ id }) => id ?? bench.id())),
      plainArray(wanted.map(({ lowId }) => lowId ?? bench.id())),
      plainArray(wanted.map(({ isUnfunded }) => String(isUnfunded ?? false))),
      isClaimed,
      null,
      now,
    ]);
    assert.equal(rows.length, wanted.length);
    return rows.sort((first, second) => first.ord - second.ord);
  }

  const outcomesOf = async (wanted: readonly Activation[], now = bench.now) =>
    (await rowsOf(wanted, now)).map(({ outcome }) => outcome);

  const outcomeOf = async (wanted: Activation, now = bench.now) =>
    (await outcomesOf([wanted], now))[0] as string;

  return { bench, rowsOf, outcomesOf, outcomeOf };
}
