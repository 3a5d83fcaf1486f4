import assert from 'node:assert/strict';
import type { Context } from '../../src/context.ts';
import { plainArray, textArray } from '../../src/db/sql.ts';
import { REDEEM } from '../../src/redemptions/redeem.ts';
import { Bench, BUCKET, type Card } from './statement.ts';

type Redemption = {
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

/** Calls the function `redeem`, on a bench with several products. */
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

  /** @param isClaimed whether the IDs are of claims that exist already, as across shards */
  async rowsOf(requests: readonly Redemption[], now = this.bench.now, isClaimed = false): Promise<Row[]> {
    const ids = requests.map(({ id }) => id ?? this.bench.id());
    const rows = await this.bench.hot<Row>(REDEEM, [
      BUCKET,
      plainArray(requests.map(({ by }) => by.merchant.id)),
      plainArray(requests.map(({ card }) => card.codeKey)),
      plainArray(requests.map(({ card }) => card.pinKey)),
      plainArray(requests.map(({ amount }) => amount)),
      textArray(requests.map(({ reference }) => reference ?? null)),
      plainArray(ids),
      isClaimed,
      now,
    ]);
    return requests.map((_, index) => {
      const [found, ...others] = rows.filter(({ ord }) => ord === index + 1);
      assert.ok(found && others.length === 0);
      return found;
    });
  }

  /** The outcomes of redemptions that one call decides. */
  async outcomesOf(requests: readonly Redemption[], now = this.bench.now): Promise<string[]> {
    return (await this.rowsOf(requests, now)).map(({ outcome }) => outcome);
  }

  async outcomeOf(
    by: Context,
    card: Card,
    amount: number,
    reference?: string,
    now = this.bench.now,
  ): Promise<string> {
    const request = { by, card, amount, ...(reference !== undefined && { reference }) };
    return (await this.outcomesOf([request], now))[0] as string;
  }
}
