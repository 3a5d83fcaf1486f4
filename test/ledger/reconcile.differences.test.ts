import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { voidBatch } from '../../src/batches/cancel.ts';
import { findBatch } from '../../src/batches/export.ts';
import type { Context, Service } from '../../src/context.ts';
import { openOwner } from '../../src/db/pool.ts';
import { raw, type Sql, sql } from '../../src/db/sql.ts';
import { reconcile } from '../../src/ledger/reconcile.ts';
import { topUp } from '../../src/merchants/floats.ts';
import { busyDay } from '../support/busy-day.ts';
import { asOperator, onDatabase, startTestService, type TestService } from '../support/harness.ts';
import { TAMPERINGS_OF_BATCHES } from '../support/tamperings.batches.ts';
import { TAMPERINGS_OF_RECORDS } from '../support/tamperings.records.ts';
import { TAMPERINGS, UNUSED_ACCOUNTS } from '../support/tamperings.ts';

let testService: TestService;
let owner: Awaited<ReturnType<typeof openOwner>>;
let context: Context;

const redOf = async (service: Service = testService.service) => {
  const { ok, checks } = await reconcile(service);
  const red = checks.filter((check) => !check.ok);
  assert.equal(ok, red.length === 0);
  for (const { differing } of red) assert.ok(differing.length > 0);
  return red;
};

before(async () => {
  testService = await startTestService();
  owner = await openOwner(testService.url);
  await owner.query(sql`set search_path to scrip`);
  context = await busyDay(testService);
});

after(async () => {
  await owner?.close();
  await testService?.stop();
});

describe('the books of a busy day', () => {
  test('agree, and add up to zero', async () => {
    assert.deepEqual(await redOf(), []);
    const { checks, totals } = await reconcile(testService.service);
    const count = async (from: string) => {
      const [row] = await owner.query<{ count: bigint }>(raw(`select count(*) from ${from}`));
      return Number(row?.count);
    };
    assert.deepEqual(Object.fromEntries(checks.map(({ name, checked }) => [name, checked])), {
      days: 0,
      slices: await count('journal'),
      'float-balances': 3,
      'voucher-balances': await count('vouchers'),
      'journal-entries': await count('journal'),
      activations: await count('vouchers'),
      ages: 0,
      // One of them is to zero, which books the reversal only.
      'redemption-updates': 2,
      'update-entries': 2,
      refunds: 0,
      batches: 7,
      'reserve-shares': 6,
      reserves: 6,
      replacements: 5,
      uses: await count("journal where kind = 'REDEMPTION' and original_id is null"),
      'replacement-entries': await count("journal where kind = 'REPLACEMENT'"),
      references: await count('claims'),
      'top-ups': 3,
      escheats: 0,
      imports: 0,
      deliveries: 0,
      holds: 0,
      voids: 0,
      buckets: await count('vouchers'),
      commissions: 0,
      settlements: 0,
      payouts: 0,
      'set-by-operators': 15,
      'vouchers-as-made': await count('vouchers'),
      totals: 2,
    });
    assert.equal(
      totals.reduce((sum, { balance }) => sum + Math.round(Number(balance) * 100), 0),
      0,
    );
    assert.deepEqual(
      totals.flatMap(({ kind, currency, balance }) => (currency === 'EUR' ? [`${kind} ${balance}`] : [])),
      ['FLOAT 60.00', 'FUNDING -100.00', 'RESERVE 0.00', 'SETTLEMENT 5.00', 'VOUCHER 35.00'],
    );
    for (const currency of ['EUR', 'USD']) {
      assert.deepEqual(
        totals.filter((total) => total.currency === currency).map(({ kind }) => kind),
        ['FLOAT', 'FUNDING', 'RESERVE', 'SETTLEMENT', 'VOUCHER'],
      );
    }
  });

  test('are read at one moment: what is booked meanwhile makes no difference', async () => {
    const { service } = testService;
    const before = await reconcile(service);
    const { db } = service;
    const disturbed = onDatabase(service, {
      ...db,
      transaction: (run, isolation) =>
        db.transaction(async (tx) => {
          const query = async <Row>(statement: Sql) => {
            const rows = await tx.query<Row>(statement);
            if (rows.length > 0)
              await topUp(asOperator(service), {
                merchantId: context.merchant.id,
                currency: 'USD',
                amountMinor: 100n,
              });
            return rows;
          };
          return run({ ...tx, query });
        }, isolation),
    });
    assert.deepEqual(await reconcile(disturbed), before);
    assert.notDeepEqual((await reconcile(service)).totals, before.totals);
  });

  test('agree before and after a canceled batch is voided', async () => {
    const batch = await findBatch(context, 'canceled');
    assert.deepEqual(await redOf(), []);
    await voidBatch(testService.service, batch.id);
    assert.deepEqual(await redOf(), []);
  });
});

/** Tampers and reconciles in one transaction, and rolls it back. */
async function tampered(statement: string) {
  const within = { query: owner.query };
  await owner.query(sql`begin isolation level repeatable read`);
  try {
    await owner.query(raw(statement));
    const { service } = testService;
    return await redOf(onDatabase(service, { ...service.db, transaction: (run) => run(within) }));
  } finally {
    await owner.query(sql`rollback`);
  }
}

/** The differences that a check reports. */
async function differences(name: string, statement: string) {
  const red = await tampered(statement);
  return red.find((check) => check.name === name)?.differing ?? assert.fail(`${name} found no difference`);
}

async function one<Row>(statement: string): Promise<Row> {
  const [row] = await owner.query<Row>(raw(statement));
  return row ?? assert.fail(`no row: ${statement}`);
}

describe('reconcile detects', () => {
  const all = { ...TAMPERINGS, ...TAMPERINGS_OF_BATCHES, ...TAMPERINGS_OF_RECORDS };
  for (const [what, [statement, red]] of Object.entries(all))
    test(what, async () => {
      const found = (await tampered(statement)).map(({ name }) => name);
      assert.equal(found.join(' '), red);
    });

  test('no difference in accounts that were never used', async () =>
    assert.deepEqual(await tampered(UNUSED_ACCOUNTS), []));

  test('no difference after all of that is rolled back', async () => assert.deepEqual(await redOf(), []));
});

describe('reconcile reports', () => {
  test('the balance of a float, and the sum of its entries', async () => {
    const unused = `${UNUSED_ACCOUNTS}; update floats set balance_minor = 5 where currency = 'GBP'`;
    const [{ account, ...differing }, ...others] = (await differences('float-balances', unused)) as [
      Record<string, unknown>,
    ];
    assert.ok(Number(account) > 0);
    const merchantId = context.merchant.id;
    assert.deepEqual(differing, { merchantId, currency: 'GBP', balanceMinor: '5', journalMinor: '0' });
    assert.deepEqual(others, []);
    const [out] = await differences('float-balances', 'update floats set balance_minor = balance_minor + 1');
    assert.equal(BigInt(String(out?.['balanceMinor'])) - BigInt(String(out?.['journalMinor'])), 1n);
  });

  test('the first ten of many differing vouchers', async () => {
    const large = "batch_id = (select id from batches where reference = 'large')";
    const differing = await differences(
      'voucher-balances',
      `update vouchers set balance_minor = balance_minor + 3 where ${large}`,
    );
    const found = { balanceMinor: '103', journalMinor: '100', currency: 'USD', journalCurrency: 'USD' };
    assert.deepEqual(
      differing.map(({ serialNumber, ...rest }) => [typeof serialNumber, rest]),
      Array.from({ length: 10 }, () => ['number', found]),
    );
    assert.equal(new Set(differing.map(({ serialNumber }) => serialNumber)).size, 10);
  });

  test('money on a voucher that is not active, and on one that does not exist', async () => {
    const { serial } = await one<{ serial: bigint }>('select max(serial_number) as serial from vouchers');
    const stray = `update vouchers set balance_minor = 1 where activated_at is null and serial_number
      = (select max(serial_number) from vouchers where activated_at is null)`;
    const [never] = await differences('voucher-balances', stray);
    assert.deepEqual(
      { ...never, serialNumber: 0 },
      { serialNumber: 0, balanceMinor: '1', journalMinor: '0', currency: 'USD', journalCurrency: null },
    );
    const beyond = Number(serial) + 1;
    const differing = await differences(
      'voucher-balances',
      `update journal set credit_account = ${beyond} where reference = 'activation-of-a-replacement'`,
    );
    assert.deepEqual(differing.at(-1), {
      serialNumber: beyond,
      balanceMinor: null,
      journalMinor: '2000',
      currency: null,
      journalCurrency: 'USD',
    });
  });

  test('batches in the order of their numbers, and vouchers of a batch that does not exist', async () => {
    const { id } = await one<{ id: number }>("select id from batches where reference = 'open'");
    const differing = await differences(
      'batches',
      `update vouchers set batch_id = 999 where batch_id = ${id}`,
    );
    assert.deepEqual(
      differing.map(({ batchId, status, quantity, produced, vouchers }) => [
        batchId,
        status,
        quantity,
        produced,
        vouchers,
      ]),
      [
        [id, 'COMPLETED', 3, 3, 0],
        [999, null, null, null, 3],
      ],
    );
  });

  test('a voucher whose activation is missing or has another value', async () => {
    const [differing] = await differences(
      'activations',
      `update vouchers set value_minor = 500, activated_at = now(), payer_id = 1 where serial_number
        = (select max(serial_number) from vouchers where activated_at is null)`,
    );
    assert.partialDeepStrictEqual(differing, { valueMinor: '500', activations: 0, activationMinor: null });
    const more = 'update vouchers set value_minor = value_minor + 1 where value_minor = 500000';
    assert.partialDeepStrictEqual(await differences('activations', more), [
      { valueMinor: '500001', activations: 1, activationMinor: '500000' },
    ]);
  });

  test('how much a currency is out, and an account that does not exist', async () => {
    const more = "update floats set balance_minor = balance_minor + 7 where currency = 'EUR'";
    assert.deepEqual(await differences('totals', more), [{ currency: 'EUR', sumMinor: '7' }]);
    const nowhere = "update journal set credit_account = 4999999999 where reference = 'sale-3'";
    assert.deepEqual(await differences('totals', nowhere), [
      { currency: 'USD', sumMinor: 'on an account that does not exist' },
    ]);
  });

  test('the amounts expected and booked of a reserve, and of its share in each bucket', async () => {
    const { transactionId } = await one<{ transactionId: string }>(
      `select transaction_id as "transactionId" from batches where reference = 'later'`,
    );
    const less = "batch_id = (select id from batches where reference = 'later') and kind = 'RESERVATION'";
    assert.deepEqual(
      await differences('reserves', `update journal set amount_minor = amount_minor - 1 where ${less}`),
      [
        {
          transactionId,
          status: 'COMPLETED',
          expectedMinor: '6000',
          reservedMinor: '5999',
          dueMinor: '0',
          releasedMinor: '0',
        },
      ],
    );
    // Two of three are active.
    const elsewhere = "update journal set debit_account = reserve_of(999) where reference = 'activation-0'";
    assert.deepEqual(await differences('reserve-shares', elsewhere), [
      {
        transactionId,
        status: 'COMPLETED',
        bucket: 0,
        expectedMinor: '4000',
        journalMinor: '2000',
        lapsed: 0,
      },
    ]);
  });
});
