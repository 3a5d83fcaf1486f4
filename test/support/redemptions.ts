import assert from 'node:assert/strict';
import { before } from 'node:test';
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
export function redemptions() {
  const bench = Bench.ofTests();
  before(async () => {
    await bench.product('DINAR', 'KWD', 3);
    await bench.product('YEN', 'JPY', 0);
    await bench.product('OWN', 'USD', 2, { scope: 'issuer' });
  });

  /** @param isClaimed whether the IDs are of claims that exist already, as across shards */
  async function rowsOf(requests: readonly Redemption[], now = bench.now, isClaimed = false): Promise<Row[]> {
    const ids = requests.map(({ id }) => id ?? bench.id());
    const rows = await bench.hot<Row>(REDEEM, [
      BUCKET,
      plainArray(requests.map(({ by }) => by.merchant.id)),
      plainArray(requests.map(({ by }) => by.keyId)),
      plainArray(requests.map(({ card }) => card.codeKey)),
      plainArray(requests.map(({ card }) => card.pinKey)),
      plainArray(requests.map(({ amount }) => amount)),
      textArray(requests.map(({ reference }) => reference ?? null)),
      plainArray(ids),
      isClaimed,
      null,
      now,
    ]);
    return requests.map((_, index) => {
      const [found, ...others] = rows.filter(({ ord }) => ord === index + 1);
      assert.ok(found && others.length === 0);
      return found;
    });
  }

  /** The outcomes of redemptions that one call decides. */
  const outcomesOf = async (requests: readonly Redemption[], now = bench.now) =>
    (await rowsOf(requests, now)).map(({ outcome }) => outcome);

  async function outcomeOf(by: Context, card: Card, amount: number, reference?: string, now = bench.now) {
    const request = { by, card, amount, ...(reference !== undefined && { reference }) };
    return (await outcomesOf([request], now))[0] as string;
  }

  return { bench, rowsOf, outcomesOf, outcomeOf };
}
