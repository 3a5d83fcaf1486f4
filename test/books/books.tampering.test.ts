import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { dayChecks } from '../../src/books/day-checks.ts';
import { setGlAccount } from '../../src/books/gl.ts';
import { verifyBooks } from '../../src/books/verify.ts';
import type { Service } from '../../src/context.ts';
import { openOwner, type Queries } from '../../src/db/pool.ts';
import { raw, sql } from '../../src/db/sql.ts';
import { ACCOUNT_KINDS } from '../../src/ledger/kinds.ts';
import { reconcile } from '../../src/ledger/reconcile.ts';
import { topUp } from '../../src/merchants/floats.ts';
import { updateRedemption } from '../../src/redemptions/update.ts';
import { approve } from '../../src/settlement/approve.ts';
import { draftSettlements } from '../../src/settlement/draft.ts';
import { pay } from '../../src/settlement/pay.ts';
import { playDays } from '../support/books.history.ts';
import { type Ledger, sell, spend } from '../support/books.ts';
import { onDatabase } from '../support/harness.ts';
import { brokenIdentities, FIRST_ACCOUNT } from '../support/identities.ts';
import { ofFile } from '../support/scope.ts';
import { close, terms } from '../support/settlements.ts';
import { TAMPERINGS_OF_BOOKS } from '../support/tamperings.books.ts';
import { TAMPERINGS_OF_SETTLEMENTS } from '../support/tamperings.settlements.ts';

/** Changes of a superuser in closed days and in the open day after, and the checks that find them. */

let ledger: Ledger;
let owner: Awaited<ReturnType<typeof openOwner>>;
let merchants: readonly number[];
const t = ofFile();

before(async () => {
  const played = await playDays(t);
  ledger = played.ledger;
  merchants = [played.shop, played.cafe];
  const { operator } = ledger;
  const { service } = ledger.started;
  // 6 March: a settlement day with commission. 7 March: it is paid. 8 March: open.
  const bar = await ledger.merchant(50_000n);
  const merchantId = bar.merchant.id;
  await terms(operator, merchantId, { from: '2026-03-06' });
  const [card, other] = await sell(bar, 2, 60);
  assert.ok(card && other);
  await spend(bar, card, 60, 'bar 1');
  await spend(bar, other, 20, 'bar 2');
  await ledger.at('2026-03-07T08:00:00Z');
  assert.deepEqual(await close(ledger), ['2026-03-06']);
  const [draft] = await draftSettlements(operator, { merchantId });
  await approve(operator, draft?.id ?? 0);
  const paid = { bankReference: 'B 1', valueDate: '2026-03-07' };
  await pay(operator, { settlementId: draft?.id ?? 0, reference: 'payout', ...paid });
  await updateRedemption({ ...bar, now: service.clock() }, { reference: 'bar 2', amountUsed: 5 });
  await ledger.at('2026-03-08T08:00:00Z');
  assert.deepEqual(await close(ledger), ['2026-03-07']);
  await spend(bar, other, 1, 'open 1');
  await topUp(operator, { merchantId, currency: 'USD', amountMinor: 5_000n, reference: 'open 2' });
  await sell(bar, 1, 5);
  await spend(bar, other, 1, 'open 3');
  await updateRedemption({ ...bar, now: service.clock() }, { reference: 'open 1', amountUsed: 0.5 });
  for (const [at, kind] of ACCOUNT_KINDS.entries())
    await setGlAccount(operator, { kind, number: String(FIRST_ACCOUNT + at) });
  owner = await openOwner(ledger.started.url);
  t.after(() => owner.close());
  await owner.query(sql`set search_path to scrip`);
});

/** A service whose transactions are savepoints of the one that is open. */
function within(): Service {
  const { service } = ledger.started;
  const tx: Queries & { copyIn: () => never } = {
    query: owner.query,
    copyIn: () => assert.fail('nothing is copied in'),
  };
  return onDatabase(service, {
    ...service.db,
    query: owner.query,
    async transaction(run) {
      await owner.query(sql`savepoint reading`);
      try {
        return await run(tx);
      } finally {
        await owner.query(sql`rollback to savepoint reading`);
      }
    },
  });
}

async function tampered<Found>(statement: string, look: (service: Service) => Promise<Found>) {
  await owner.query(sql`begin isolation level repeatable read`);
  try {
    await owner.query(raw(`set session_replication_role = replica; ${statement}`));
    return await look(within());
  } finally {
    await owner.query(sql`rollback`);
  }
}

/** The findings of every check of the books. */
async function findingsOf(service: Service) {
  const identities = await brokenIdentities(service, merchants);
  const { breaks } = await verifyBooks(service);
  const redOf = async (sinceClosing: boolean) =>
    (await reconcile(service, { sinceClosing })).checks.filter(({ ok }) => !ok).map(({ name }) => name);
  const checks: string[] = [];
  const times = { startsAt: new Date('2026-03-06'), endsAt: new Date('2026-03-07') };
  const day = { day: '2026-03-06', ...times, zone: 'UTC' };
  for (const [name, statement] of Object.entries(dayChecks)) {
    const [row] = await service.db.query<{ differing: object[] | null }>(statement(day));
    if (row?.differing) checks.push(name);
  }
  return {
    identities,
    verify: [...new Set(breaks.map(({ change, day: of }) => `${change} ${of.slice(-2)}`))],
    checks,
    full: await redOf(false),
    since: await redOf(true),
  };
}

const NONE = { identities: [], verify: [], checks: [], full: [], since: [] };

test('no check finds anything in untouched books', async () => {
  assert.deepEqual(await tampered('select 1', findingsOf), NONE);
});

describe('the checks of the books find', () => {
  for (const [what, statement, named] of [...TAMPERINGS_OF_BOOKS, ...TAMPERINGS_OF_SETTLEMENTS])
    test(what, async () => assert.deepEqual(await tampered(statement, findingsOf), { ...NONE, ...named }));
});

test('of many vouchers, those that moved since the last closing are compared', async () => {
  const many = "update pg_class set reltuples = 2000000 where oid = 'vouchers'::regclass";
  const namesOf = async (statement: string) => {
    const { checks } = await tampered(statement, (service) => reconcile(service, { sinceClosing: true }));
    const red = checks.filter(({ ok }) => !ok).map(({ name }) => name);
    return { red, hasTotals: checks.some(({ name }) => name === 'voucher-totals') };
  };
  assert.deepEqual(await namesOf('select 1'), { red: [], hasTotals: true });
  assert.deepEqual(await namesOf(many), { red: [], hasTotals: false });
  const more = 'update vouchers set balance_minor = balance_minor + 1 where serial_number';
  assert.deepEqual(
    await namesOf(`${many}; ${more} = (select serial_number from journal where reference = 'open 1')`),
    { red: ['voucher-balances'], hasTotals: false },
  );
});

/** Other values for the columns of a row. */
const COLUMNS_OF_A_ROW = {
  kind: "'CASH_OUT'",
  debit_account: 'debit_account + 1',
  credit_account: 'debit_account + 2',
  amount_minor: 'amount_minor + 1',
  currency: "'EUR'",
  occurred_at: "occurred_at + interval '1 microsecond'",
  serial_number: 'serial_number + 1',
  original_id: 'id',
  merchant_id: 'merchant_id + 1',
  batch_id: '7',
  reference: "'another'",
} as const;

test('the verification finds a closed row after a change of any column', async () => {
  const [row] = await ledger.sql<{ id: string }>(
    "select id from scrip.journal where reference = 'bar 1' limit 1",
  );
  for (const [column, value] of Object.entries(COLUMNS_OF_A_ROW)) {
    const found = await tampered(
      `update journal set ${column} = ${value} where reference = 'bar 1'`,
      async (service) => (await verifyBooks(service, { from: '2026-03-06', to: '2026-03-07' })).breaks,
    );
    const own = found.filter(({ transactionId }) => transactionId === row?.id);
    assert.deepEqual([column, own.map(({ change }) => change)], [column, ['altered']]);
  }
});
