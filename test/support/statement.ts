import assert from 'node:assert/strict';
import { after, before } from 'node:test';
import { authenticate } from '../../src/api-keys/authenticate.ts';
import { readVouchersOf } from '../../src/batches/export.ts';
import { generate } from '../../src/batches/generate.ts';
import type { Context } from '../../src/context.ts';
import { openOwner } from '../../src/db/pool.ts';
import type { HotStatement } from '../../src/db/sql.ts';
import { newId } from '../../src/ledger/id.ts';
import { createProduct, productDefaults } from '../../src/products/products.ts';
import { asOperator, startTestService, type TestService } from './harness.ts';
import type { ListOf } from './list.ts';
import { waitForLocks } from './owner.ts';

/** On one server there is one bucket. */
export const BUCKET = 0;

/** A voucher as the functions of the hot path look it up. */
export type Card = {
  readonly serial: bigint;
  readonly code: string;
  readonly pin: string;
  readonly codeKey: string;
  readonly pinKey: string;
};

/** A card that does not exist. */
export const UNKNOWN: Card = {
  serial: 0n,
  code: '',
  pin: '',
  codeKey: 'f'.repeat(32),
  pinKey: 'e'.repeat(32),
};
/** The card with a wrong PIN. */
export const wrong = (card: Card): Card => ({ ...card, pinKey: 'd'.repeat(32) });

type Owner = Awaited<ReturnType<typeof openOwner>>;
type Terms = { readonly value?: number; readonly reference?: string };

let references = 0;

/**
 * A bench for the functions of the hot path: the rows that they return, and the rows that they write. The
 * variants refuse many cases that the functions must withstand, such as one voucher twice in a call.
 */
export class Bench {
  readonly now = new Date('2030-01-15T08:00:00.000Z');
  #served: TestService | undefined;
  #owner: Owner | undefined;

  private constructor() {
    before(async () => {
      this.#served = await startTestService();
      this.#served.clock.set(this.now);
      this.#owner = await openOwner(this.#served.url);
      await this.query('set search_path = scrip');
    });
    after(async () => {
      await this.#owner?.close();
      await this.#served?.stop();
    });
  }

  /** A bench with a service of its own, for the tests of a file. */
  static ofTests(): Bench {
    return new Bench();
  }

  get served(): TestService {
    return this.#served ?? assert.fail('the service has not started');
  }

  /** Creates a product of a currency, otherwise with the terms of DEFAULT. */
  async product(code: string, currency: string, decimals: number, more: object = {}): Promise<void> {
    const wanted = { ...productDefaults(currency, decimals), code, name: code, ...more };
    await createProduct(asOperator(this.served.service), wanted);
  }

  async merchant(product?: string, float?: bigint): Promise<Context> {
    const permit = ['update-redemption'] as const;
    const wanted = { permit, ...(product && { product }), ...(float !== undefined && { float }) };
    const { authorization } = await this.served.createMerchant(wanted);
    return (await authenticate(this.served.service, authorization)).context;
  }

  /** Generates a batch. @returns its vouchers */
  async cards<Count extends number>(
    context: Context,
    quantity: Count,
    { value, reference = `b-${++references}` }: Terms = {},
  ): Promise<ListOf<Card, Count>> {
    const { service } = context;
    const { batch } = await generate(context, { reference, quantity, value });
    const vouchers = await readVouchersOf(service, batch.transactionId, quantity);
    const cards = (vouchers ?? []).map(({ serialNumber, code, pin }) => ({
      serial: serialNumber,
      code,
      pin,
      codeKey: service.keys.codeKey(code),
      pinKey: service.keys.pinKey(code, pin),
    }));
    return cards as ListOf<Card, Count>;
  }

  async card(context: Context, value?: number): Promise<Card> {
    const [card] = await this.cards(context, 1, value === undefined ? {} : { value });
    return card;
  }

  id(): string {
    return newId(this.now);
  }

  hot<Row>(statement: HotStatement, values: readonly unknown[]): Promise<Row[]> {
    return this.served.service.db.hot<Row>(statement, values, BUCKET);
  }

  /** Runs a statement as the owner of the database: the service may do less. */
  query<Row>(text: string): Promise<Row[]> {
    return (this.#owner ?? assert.fail('the service has not started')).query<Row>({ text, values: [] });
  }

  /** A value of a voucher's row, as text. */
  async ofCard(card: Card, column: string): Promise<string | null> {
    const [row] = await this.query<{ value: string | null }>(
      `select (${column})::text as value from vouchers where serial_number = ${card.serial}`,
    );
    return row?.value ?? null;
  }

  /** The same for a list of vouchers, in its order. */
  async ofCards(cards: readonly Card[], column: string): Promise<(string | null)[]> {
    const values: (string | null)[] = [];
    for (const card of cards) values.push(await this.ofCard(card, column));
    return values;
  }

  /** The PIN guard of a voucher: the wrong PINs, and the end of the lock, in minutes from now. */
  async guardOf(card: Card): Promise<string> {
    const minutes = `extract(epoch from pin_locked_until - '${this.now.toISOString()}')::numeric / 60`;
    return (
      (await this.ofCard(card, `wrong_pins || ' ' || coalesce(trim_scale(${minutes})::text, 'open')`)) ?? ''
    );
  }

  /** When a voucher is swept by itself, in seconds from now; null if it is swept with its batch. */
  dueOf(card: Card): Promise<string | null> {
    const seconds = `trim_scale(extract(epoch from e.due_at - '${this.now.toISOString()}'))`;
    return this.ofCard(
      card,
      `(select ${seconds} from voucher_expiries e where e.serial_number = vouchers.serial_number)`,
    );
  }

  /** Makes a voucher expire some seconds from now. */
  expiresIn(card: Card, seconds: number): Promise<unknown[]> {
    return this.setCard(
      card,
      `expires_at = '${this.now.toISOString()}'::timestamptz + interval '${seconds} s'`,
    );
  }

  /**
   * Expects that wrong PINs are counted, and lock the voucher at the fifth, the tenth and the fifteenth.
   * @param guess tries a wrong PIN
   */
  async countsWrongPins(card: Card, guess: () => Promise<string>): Promise<void> {
    const after = async (count: number) => {
      await this.setCard(card, `wrong_pins = ${count}, pin_locked_until = null`);
      assert.equal(await guess(), '55');
      return this.guardOf(card);
    };
    assert.deepEqual([await after(0), await after(3), await after(4)], ['1 open', '4 open', '5 15']);
    assert.deepEqual([await after(5), await after(9), await after(10)], ['6 open', '10 1440', '11 open']);
    assert.deepEqual(
      [await after(13), await after(14), await after(15)],
      ['14 open', '15 Infinity', '15 Infinity'],
    );
  }

  /** The position of a voucher's row, which changes with every update. */
  async placeOf(card: Card): Promise<string | null> {
    return this.ofCard(card, 'ctid');
  }

  setCard(card: Card, what: string): Promise<unknown[]> {
    return this.query(`update vouchers set ${what} where serial_number = ${card.serial}`);
  }

  /** The number of an account: of the operator, or of a merchant. */
  async account(kind: string, of?: Context, currency = 'USD'): Promise<bigint> {
    const [row] = await this.query<{ id: bigint }>(
      `insert into accounts (kind, merchant_id, currency, decimals)
       values ('${kind}', ${of?.merchant.id ?? 0}, '${currency}', 2)
       on conflict on constraint accounts_one_each do update set kind = excluded.kind returning id`,
    );
    return row?.id ?? assert.fail('there is no such account');
  }

  /** The balance of a merchant's float, in minor units. */
  async floatOf({ merchant }: Context, currency = 'USD'): Promise<bigint> {
    const [row] = await this.query<{ balance_minor: bigint }>(
      `select balance_minor from floats where merchant_id = ${merchant.id} and currency = '${currency}'`,
    );
    return row?.balance_minor ?? assert.fail('the merchant has no float');
  }

  /** Changes the row of a merchant's float in dollars. */
  setFloat({ merchant }: Context, what: string): Promise<unknown[]> {
    return this.query(`update floats set ${what} where merchant_id = ${merchant.id} and currency = 'USD'`);
  }

  /** Creates an endpoint of a merchant. `what` is a list of assignments to its row. */
  async endpoint(context: Context, events: string | null, what?: string): Promise<number> {
    const [row] = await this.query<{ id: number }>(
      `insert into webhook_endpoints (merchant_id, url, events, secret, created_at)
       values (${context.merchant.id}, 'https://x.test', ${events === null ? 'null' : `'{${events}}'`}, '',
         now()) returning id`,
    );
    const id = row?.id as number;
    if (what) await this.query(`update webhook_endpoints set ${what} where id = ${id}`);
    return id;
  }

  /**
   * Creates a merchant with endpoints, two of which subscribe to an event.
   * @returns the merchant, and an assertion that the event with an ID was announced once to each of the
   *   two, and to no other
   */
  async subscribed(event: string): Promise<{ merchant: Context; isAnnounced(id: string): Promise<void> }> {
    const [merchant, neighbor] = [await this.merchant(), await this.merchant()];
    const wanted = [await this.endpoint(merchant, null), await this.endpoint(merchant, `float.low,${event}`)];
    await this.endpoint(merchant, event === 'voucher.redeemed' ? 'voucher.activated' : 'voucher.redeemed');
    await this.endpoint(merchant, null, "disabled_at = now(), disabled_reason = 'it was'");
    await this.endpoint(merchant, null, 'removed_at = now()');
    await this.endpoint(neighbor, null);
    const isAnnounced = async (id: string) => {
      const columns = 'endpoint_id, event_id, type, subject_id, data, occurred_at, due_at';
      const deliveries = await this.query(
        `select ${columns} from webhook_deliveries where type = '${event}' order by endpoint_id`,
      );
      const expected = {
        event_id: id,
        type: event,
        subject_id: id,
        data: null,
        occurred_at: this.now,
        due_at: this.now,
      };
      assert.deepEqual(
        deliveries,
        wanted.map((endpoint_id) => ({ endpoint_id, ...expected })),
      );
    };
    return { merchant, isAnnounced };
  }

  /**
   * Runs a call that has to wait for a change of a voucher, which commits while the call waits. The call
   * must decide on the changed row. (A call that does not wait has decided before the change.)
   * @param waiters how many statements of the call wait
   */
  behind<T>(card: Card, what: string, call: () => Promise<T>, waiters = 1): Promise<T> {
    return this.during([`update vouchers set ${what} where serial_number = ${card.serial}`], call, waiters);
  }

  /** The same with a change of a merchant's float in dollars. */
  behindFloat<T>({ merchant }: Context, what: string, call: () => Promise<T>): Promise<T> {
    const change = `update floats set ${what} where merchant_id = ${merchant.id} and currency = 'USD'`;
    return this.during([change], call);
  }

  /**
   * Runs a call while another transaction, which has run some statements, is open; it commits once the
   * call waits for it.
   */
  async during<T>(
    statements: readonly string[],
    call: () => Promise<T>,
    waiters = 1,
    further: readonly string[] = [],
  ): Promise<T> {
    const other = await openOwner(this.served.url);
    const run = (text: string) => other.query({ text, values: [] });
    await run('set search_path = scrip');
    await run('begin');
    for (const statement of statements) await run(statement);
    let isOver = false;
    const called = call().finally(() => {
      isOver = true;
    });
    await waitForLocks(this.served.url, waiters, () => isOver);
    for (const statement of further) await run(statement);
    await run('commit');
    await other.close();
    return called;
  }
}
