import assert from 'node:assert/strict';
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
export class Updates {
  readonly bench: Bench;
  readonly one: Context;
  readonly other: Context;
  #references = 0;

  private constructor(bench: Bench, one: Context, other: Context) {
    this.bench = bench;
    this.one = one;
    this.other = other;
  }

  static async open(): Promise<Updates> {
    const bench = await Bench.open();
    await bench.product('DINAR', 'KWD', 3);
    return new Updates(bench, await bench.merchant(), await bench.merchant());
  }

  /** A redemption to update: its voucher, its reference and its id. */
  async redeemed(amount = 10, by = this.one, value = 25) {
    const card = await this.bench.card(by, value);
    const reference = `sale-${++this.#references}`;
    const { transaction } = await redeem(by, { ...card, amount, reference });
    return { card, reference, id: transaction.transactionId, by };
  }

  async rowsOf(updates: readonly Update[], now = this.bench.now): Promise<Row[]> {
    const rows = await this.bench.hot<Row>(UPDATE_REDEMPTIONS, [
      BUCKET,
      plainArray(updates.map(({ by }) => by.merchant.id)),
      textArray(updates.map(({ reference }) => reference)),
      updates[0]?.original ? plainArray(updates.map(({ original }) => original ?? null)) : null,
      plainArray(updates.map(({ amount }) => amount)),
      plainArray(updates.map(({ reversalId }) => reversalId ?? this.bench.id())),
      plainArray(updates.map(({ newId }) => newId ?? this.bench.id())),
      plainArray(updates.map(() => this.bench.id())),
      now,
    ]);
    return rows.sort((first, second) => first.ord - second.ord);
  }

  async outcomeOf(by: Context, reference: string, amount: number, now = this.bench.now): Promise<string> {
    const rows = await this.rowsOf([{ by, reference, amount }], now);
    assert.equal(rows.length, 1);
    return rows[0]?.outcome as string;
  }

  found(by: Context, ...references: string[]): Promise<Row[]> {
    const merchants = plainArray(references.map(() => by.merchant.id));
    return this.bench.hot<Row>(FIND_UPDATES, [BUCKET, merchants, textArray(references), null]);
  }

  entriesOf(card: Card): Promise<object[]> {
    return this.bench.query<object>(
      `
        select id, kind, debit_account, credit_account, amount_minor, currency, merchant_id, serial_number,
          reference, original_id, occurred_at
        from journal where serial_number = ${card.serial} and original_id is not null
        order by amount_minor, kind`,
    );
  }
}
