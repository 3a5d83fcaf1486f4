import assert from 'node:assert/strict';
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
export class Activations {
  readonly bench: Bench;

  private constructor(bench: Bench) {
    this.bench = bench;
  }

  static async open(): Promise<Activations> {
    const bench = await Bench.open();
    await bench.product('LATER', 'USD', 2, { activation: 'on-activation' });
    await bench.product('LIMITS', 'USD', 2, { minValue: 500n, maxValue: 5000n });
    await bench.product('MOST', 'USD', 2, { maxValue: 500_000n });
    await bench.product('OWN', 'USD', 2, { scope: 'issuer' });
    await bench.product('DINAR', 'KWD', 3);
    await bench.product('DINAR_LATER', 'KWD', 3, { activation: 'on-activation' });
    return new Activations(bench);
  }

  /** @param isClaimed whether the ids are those of claims that were made before, as over shards */
  async rowsOf(activations: readonly Activation[], now = this.bench.now, isClaimed = false): Promise<Row[]> {
    const rows = await this.bench.hot<Row>(ACTIVATE, [
      BUCKET,
      plainArray(activations.map(({ by }) => by.merchant.id)),
      plainArray(activations.map(({ card }) => card?.codeKey ?? null)),
      plainArray(activations.map(({ card }) => card?.pinKey ?? null)),
      plainArray(activations.map(({ serial }) => serial ?? null)),
      plainArray(activations.map(({ value }) => value ?? null)),
      textArray(activations.map(({ reference }) => reference ?? null)),
      plainArray(activations.map(({ id }) => id ?? this.bench.id())),
      plainArray(activations.map(({ lowId }) => lowId ?? this.bench.id())),
      plainArray(activations.map(({ isUnfunded }) => String(isUnfunded ?? false))),
      isClaimed,
      now,
    ]);
    assert.equal(rows.length, activations.length);
    return rows.sort((first, second) => first.ord - second.ord);
  }

  async outcomesOf(activations: readonly Activation[], now = this.bench.now): Promise<string[]> {
    return (await this.rowsOf(activations, now)).map(({ outcome }) => outcome);
  }

  async outcomeOf(activation: Activation, now = this.bench.now): Promise<string> {
    return (await this.outcomesOf([activation], now))[0] as string;
  }
}
