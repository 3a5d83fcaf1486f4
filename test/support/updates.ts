import { before } from 'node:test';
import type { Context } from '../../src/context.ts';
import { plainArray, textArray } from '../../src/db/sql.ts';
import { redeem } from '../../src/redemptions/redeem.ts';
import { FIND_UPDATES, UPDATE_REDEMPTIONS } from '../../src/redemptions/update.ts';
import { Bench, BUCKET, type Card } from './statement.ts';

/** `amount` in ten-thousandths of a major unit. */
type Update = {
  readonly by: Context;
  readonly reference: string;
  readonly amount: number;
  readonly reversalId?: string;
  readonly newId?: string;
  /** The id of the redemption, as over shards: then it is not looked up by its reference. */
  readonly original?: string;
};
type Row = {
  ord: number;
  outcome: string;
  original_id: string | null;
  original_minor: bigint | null;
  original_at: Date | null;
  reference: string | null;
  serial_number: bigint | null;
  decimals: number | null;
  reversal_id: string | null;
  updated_at: Date | null;
  new_id: string | null;
  new_minor: bigint | null;
};

/** Calls the functions of updates, on a bench with two merchants. */
export function updates() {
  const bench = Bench.ofTests();
  /** The merchants, from the start of the tests. */
  const merchants = {} as { one: Context; other: Context };
  let references = 0;
  before(async () => {
    await bench.product('DINAR', 'KWD', 3);
    Object.assign(merchants, { one: await bench.merchant(), other: await bench.merchant() });
  });

  /** A redemption to update: its voucher, its reference and its id. */
  async function redeemed(amount = 10, by = merchants.one, value = 25) {
    const card = await bench.card(by, value);
    const reference = `sale-${++references}`;
    const { transaction } = await redeem(by, { ...card, amount, reference });
    return { card, reference, id: transaction.transactionId, by };
  }

  async function rowsOf(wanted: readonly Update[], now = bench.now): Promise<Row[]> {
    const rows = await bench.hot<Row>(UPDATE_REDEMPTIONS, [
      BUCKET,
      plainArray(wanted.map(({ by }) => by.merchant.id)),
      plainArray(wanted.map(({ by }) => by.keyId)),
      textArray(wanted.map(({ reference }) => reference)),
      wanted[0]?.original ? plainArray(wanted.map(({ original }) => original ?? null)) : null,
      plainArray(wanted.map(({ amount }) => amount)),
      plainArray(wanted.map(({ reversalId }) => reversalId ?? bench.id())),
      plainArray(wanted.map(({ newId }) => newId ?? bench.id())),
      plainArray(wanted.map(() => bench.id())),
      null,
      now,
    ]);
    return rows.sort((first, second) => first.ord - second.ord);
  }

  const outcomesOf = async (wanted: readonly Update[]) =>
    (await rowsOf(wanted)).map(({ outcome }) => outcome);

  const outcomeOf = async (by: Context, reference: string, amount: number) =>
    (await outcomesOf([{ by, reference, amount }])).join();

  function found(by: Context, ...references: string[]): Promise<Row[]> {
    const ids = plainArray(references.map(() => by.merchant.id));
    return bench.hot<Row>(FIND_UPDATES, [BUCKET, ids, textArray(references), null]);
  }

  const entriesOf = (card: Card) =>
    bench.query<object>(`
      select id, kind, debit_account, credit_account, amount_minor, currency, merchant_id, serial_number,
        reference, original_id, occurred_at
      from journal where serial_number = ${card.serial} and original_id is not null
      order by amount_minor, kind`);

  return { bench, merchants, redeemed, rowsOf, outcomesOf, outcomeOf, found, entriesOf };
}
