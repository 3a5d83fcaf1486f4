import assert from 'node:assert/strict';
import type { Context } from '../src/context.ts';
import { plainArray, textArray } from '../src/db/sql.ts';
import { REDEEM } from '../src/redemptions/queries.ts';
import { Bench, BUCKET, type Card } from './statement.ts';

type ApiRequest = {
  readonly by: Context;
  readonly card: Card;
  /** In ten-thousandths of a major unit. */
  readonly amount: number;
  readonly reference?: string;
  readonly id?: string;
};
type Row = {
  ord: number;
  outcome: string;
  id: string | null;
  occurred_at: Date | null;
  serial_number: bigint | null;
  amount_minor: bigint | null;
  decimals: number | null;
  currency: string | null;
};

/** Calls the function of redemptions, on a bench with products of several terms. */
export class Redemptions {
  readonly bench: Bench;

  private constructor(bench: Bench) {
    this.bench = bench;
  }

  static async open(): Promise<Redemptions> {
    const bench = await Bench.open();
    await bench.product('DINAR', 'KWD', 3);
    await bench.product('YEN', 'JPY', 0);
    await bench.product('OWN', 'USD', 2, { scope: 'issuer' });
    return new Redemptions(bench);
  }

  /** @param isClaimed whether the ids are those of claims that were made before, as over shards */
  async rowsOf(asked: readonly ApiRequest[], now = this.bench.now, isClaimed = false): Promise<Row[]> {
    const ids = asked.map(({ id }) => id ?? this.bench.id());
    const rows = await this.bench.hot<Row>(REDEEM, [
      BUCKET,
      plainArray(asked.map(({ by }) => by.merchant.id)),
      plainArray(asked.map(({ card }) => card.codeKey)),
      plainArray(asked.map(({ card }) => card.pinKey)),
      plainArray(asked.map(({ amount }) => amount)),
      textArray(asked.map(({ reference }) => reference ?? null)),
      plainArray(ids),
      isClaimed,
      now,
    ]);
    return asked.map((_, index) => {
      const [found, ...others] = rows.filter(({ ord }) => ord === index + 1);
      assert.ok(found && others.length === 0);
      return found;
    });
  }

  /** The outcome of each of a list of redemptions that are decided by one call. */
  async outcomesOf(asked: readonly ApiRequest[], now = this.bench.now): Promise<string[]> {
    return (await this.rowsOf(asked, now)).map(({ outcome }) => outcome);
  }

  async outcomeOf(
    by: Context,
    card: Card,
    amount: number,
    reference?: string,
    now = this.bench.now,
  ): Promise<string> {
    const asked = { by, card, amount, ...(reference !== undefined && { reference }) };
    return (await this.outcomesOf([asked], now))[0] as string;
  }
}
