import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { dailyLimits } from '../../src/api-keys/daily-limits.ts';
import { STATES } from '../../src/audit/states.ts';
import { setBankAccount } from '../../src/bank/accounts.ts';
import { importBank } from '../../src/bank/import.ts';
import { matchBank } from '../../src/bank/match.ts';
import { setBooks } from '../../src/books/days.ts';
import { setGlAccount } from '../../src/books/gl.ts';
import { setBreakageRate, setDormancyRule, setVatTreatment } from '../../src/books/rules.ts';
import { verifyBooks } from '../../src/books/verify.ts';
import { openOwner } from '../../src/db/pool.ts';
import { UNSET } from '../../src/ledger/reconcile.records.ts';
import { EVER, statementOf } from '../../src/ledger/reconcile.scope.ts';
import { reconcile } from '../../src/ledger/reconcile.ts';
import { setLow, topUp } from '../../src/merchants/floats.ts';
import { merchants } from '../../src/merchants/merchants.ts';
import { designs } from '../../src/products/designs.ts';
import { approve } from '../../src/settlement/approve.ts';
import { draftSettlements } from '../../src/settlement/draft.ts';
import { pay } from '../../src/settlement/pay.ts';
import { makePayoutFile } from '../../src/settlement/payout-file.ts';
import { blockVoucher, extendVoucher, replaceVoucher } from '../../src/vouchers/operate.ts';
import { addEndpoint } from '../../src/webhooks/endpoints.ts';
import { openBank } from '../support/bank.ts';
import { type Ledger, product, sell, spend } from '../support/books.ts';
import { asOperator, onDatabase } from '../support/harness.ts';
import { ofFile } from '../support/scope.ts';
import { close, terms } from '../support/settlements.ts';

/** What operators set is proved by the audit: each way to change it in the database is found. */

let ledger: Ledger;
let owner: Awaited<ReturnType<typeof openOwner>>;
const t = ofFile();

const run = (text: string) => owner.query<Record<string, unknown>>({ text, values: [] });

before(async () => {
  ({ ledger } = await openBank(t));
  const { operator } = ledger;
  owner = await openOwner(ledger.started.url);
  t.after(() => owner.close());
  await run('set search_path to scrip');
  const because = { ...operator, actor: { ...operator.actor, reason: 'as agreed' } };
  const shop = await ledger.merchant();
  const { id } = shop.merchant;
  await product(operator, 'GIFT', 'unclaimed');
  await designs.set.run(operator, { name: 'spring', background: '#003366', color: '#ffffff' });
  await setBooks(operator, { graceMinutes: 20 });
  await setGlAccount(operator, { kind: 'FEES', number: '4400' });
  await setDormancyRule(operator, { name: 'state', from: '2030-01-01', basis: 'issue', months: 36 });
  const ofGift = { product: 'GIFT', from: '2026-03-01' };
  await setVatTreatment(operator, { ...ofGift, treatment: 'multi', country: 'DE', rate: 19 });
  await setBreakageRate(because, { ...ofGift, percent: 5, reason: 'cohorts' });
  await setLow(operator, id, 'USD', 500n);
  await terms(operator, id);
  await dailyLimits.set.run(asOperator(operator.service), {
    merchantId: String(id),
    flow: 'redeem',
    amount: 5_000,
  });
  await addEndpoint(operator, { merchantId: id, url: 'https://[::1]/', events: null, full: false }, true);
  await topUp(operator, { merchantId: id, currency: 'USD', amountMinor: 12_345n, reference: 'INV-1001' });
  await importBank(
    operator,
    {
      account: 'House',
      bytes: Buffer.from('Buchungstag;Zweck;Betrag\n01.03.2026;INV-1001;123,45\n'),
      format: 'csv',
      mapping: 'house',
    },
    false,
  );
  await matchBank(operator, true);
  const [one, two, three, four] = await sell(shop, 4, 25, { productCode: 'GIFT' });
  assert.ok(one && two && three && four);
  await spend(shop, one, 20, 'sale');
  await blockVoucher(operator, two.serial);
  await extendVoucher(operator, three.serial, new Date('2026-06-30T23:59:59.999Z'));
  await replaceVoucher(operator, three.serial);
  await merchants.set.run(operator, { id: String(id), name: 'Shop & Sons' });
  await ledger.at('2026-03-02T00:30:00Z');
  await close(ledger);
  const [draft] = await draftSettlements(operator, { merchantId: id });
  await approve(operator, draft?.id ?? 0);
  const iban = 'DE89370400440532013000';
  const accounts = new Map([[String(id), { name: 'Shop', iban, bic: null }]]);
  const payer = { name: 'Operator', iban, bic: null };
  await makePayoutFile(operator, { ids: [draft?.id ?? ''], format: 'csv', accounts, payer });
  const paid = { bankReference: 'B 1', valueDate: '2026-03-02', reference: 'payout' };
  await pay(operator, { settlementId: draft?.id ?? 0, ...paid });
  await setBankAccount(operator, { name: 'House', currency: 'USD', own: 700 });
});

/** Changes the database, and returns the checks of a nightly reconciliation and what a verification finds. */
async function tampered(statement: string): Promise<{ checks: string[]; breaks: (string | undefined)[] }> {
  const { service } = ledger.started;
  await run('begin isolation level repeatable read');
  try {
    await run(`set local session_replication_role = replica; ${statement}`);
    const within = onDatabase(service, {
      ...service.db,
      query: owner.query,
      async transaction(read) {
        await run('savepoint reading');
        try {
          return await read({ query: owner.query });
        } finally {
          await run('rollback to savepoint reading');
        }
      },
    });
    const { checks } = await reconcile(within, { sinceClosing: true });
    const { breaks } = await verifyBooks(within);
    return {
      checks: checks.filter(({ ok }) => !ok).map(({ name }) => name),
      breaks: breaks.map(({ detail }) => detail),
    };
  } finally {
    await run('rollback');
  }
}

const SET = { checks: ['set-by-operators'], breaks: [] };
const A_CARD =
  'serial_number = (select min(serial_number) from vouchers where replaced_by is null and value_minor > 0)';

/** What an operator sets, by its table, with a way to change it. */
const CHANGES: Readonly<Record<string, string>> = {
  merchants: "update merchants set name = 'Another'",
  'permissions of merchants': "update merchants set permissions = permissions || '{update-redemption}'",
  merchant_names: "update merchant_names set name = 'Another'",
  daily_limits: 'update daily_limits set amount_minor = amount_minor + 1',
  settlement_terms: 'update settlement_terms set min_payout = min_payout + 1',
  'bank accounts of merchants': "update settlement_terms set payee_digest = sha256('\\x00')",
  floats: 'update floats set low_minor = low_minor + 1 where low_minor is not null',
  products: "update products set code = 'OTHER' where code = 'GIFT'",
  'scopes of products': "update products set scope = 'issuer'",
  'policies of products': "update products set expiry_policy = 'operator' where code = 'GIFT'",
  'the first product': "update products set expiry_policy = 'unclaimed' where code = 'DEFAULT'",
  'a product that nobody made': `insert into products (code, name, currency, decimals, min_value_minor,
    max_value_minor) values ('NEW', 'New', 'USD', 2, 1, 2)`,
  card_designs: "update card_designs set logo = '\\x00'",
  voucher_vat: 'update voucher_vat set rate_ppm = rate_ppm + 1',
  'VAT that was removed': 'delete from voucher_vat',
  book_breakage_rates: 'update book_breakage_rates set rate_ppm = rate_ppm + 1',
  dormancy_rules: 'update dormancy_rules set months = 600',
  books: 'update books set grace_minutes = 5',
  gl_accounts: "update gl_accounts set account = '4401'",
  operator_settings: "insert into operator_settings values ('approvalVouchers', '1000000', now())",
  bank_accounts: "update bank_accounts set number = 'X'",
  bank_own: 'update bank_own set own_minor = own_minor + 1',
  bank_mappings: "update bank_mappings set mapping = '{}'",
  bank_files: 'update bank_files set closing_minor = 1',
  bank_entries: 'update bank_entries set amount_minor = amount_minor + 1',
  bank_matches: 'delete from bank_matches',
  'the sum of the matches of an entry': 'update bank_entries set matched_minor = 0',
  settlements: 'update settlements set due_on = due_on + 1',
  'the file that pays a settlement': 'update settlements set file_id = null',
  payout_files: "update payout_files set made_by = 'nobody'",
  payout_file_settlements: 'delete from payout_file_settlements',
  settlement_lines: 'update settlement_lines set rows = rows + 1',
  settlement_payouts: "update settlement_payouts set bank_reference = 'B 2'",
  settlement_disputes: `insert into settlement_disputes (settlement_id, comment, made_by, made_at)
    select id, 'no', 'nobody', now() from settlements`,
  api_keys: "update api_keys set secret_hash = '\\x00'",
  webhook_endpoints: "update webhook_endpoints set url = 'https://thief.example/'",
  'a block that was lifted': 'update vouchers set blocked_at = null where blocked_at is not null',
  'an expiry that was extended':
    "update vouchers set expires_at = expires_at + interval '1 day' where replaced_at is null and expires_at > '2026-06-01'",
  'an entry that was removed': "delete from voucher_vat; delete from audit where action = 'books.vat'",
};

describe('the audit proves', () => {
  test('everything that is set, as it is', async () => {
    assert.deepEqual(await tampered('select 1'), { checks: [], breaks: [] });
    const { checks } = await reconcile(ledger.started.service);
    assert.deepEqual(
      checks.filter(({ ok }) => !ok),
      [],
    );
  });

  for (const [what, statement] of Object.entries(CHANGES))
    test(what, async () => {
      const { checks, breaks } = await tampered(statement);
      if (/audit/.test(statement)) assert.equal(breaks.length, 1);
      else assert.deepEqual({ checks, breaks }, SET);
    });

  test('every table of what operators set', () => {
    const tables = Object.values(STATES).flatMap((parts) => parts.map(({ table }) => table));
    assert.deepEqual(
      tables.filter((table) => !(table in CHANGES)),
      [],
    );
  });
});

test('the terms of a batch are frozen by the close of its day', async () => {
  for (const change of [
    "expiry_policy = 'operator'",
    "scope = 'issuer'",
    "expires_at = expires_at + interval '1 day'",
  ])
    assert.deepEqual(await tampered(`update batches set ${change}`), {
      checks: [],
      breaks: ['batches are not those that were closed'],
    });
});

test('a voucher of which nothing was set is not blocked, and expires with its batch', async () => {
  const scope = { quietBefore: null, buckets: [0], since: EVER, now: new Date() };
  const queries = UNSET['vouchers-as-made']?.(scope) ?? assert.fail();
  for (const change of ["expires_at = expires_at + interval '1 day'", 'blocked_at = now()']) {
    await run('begin');
    await run(`update vouchers set ${change} where ${A_CARD}`);
    const [row] = await owner.query<{ differing: object[] }>(statementOf(queries));
    await run('rollback');
    assert.equal(row?.differing?.length, 1);
  }
});

/** How the tables are proved of which operators set nothing. A new table must be added here or to STATES. */
const OTHERS: Readonly<Record<string, readonly string[]>> = {
  'sealed, closed, and computed again by `books verify`': [
    ...['journal', 'book_aging', 'book_ages', 'book_balances', 'book_closings', 'book_cohorts', 'book_days'],
    ...['book_late_rows', 'book_movements', 'book_reversals', 'book_seals', 'book_slices', 'batches'],
  ],
  'compared with the journal by `reconcile`': [
    ...['vouchers', 'claims', 'redemption_updates', 'voids', 'float_holds', 'settlement_fees', 'accounts'],
    ...['settlement_numbers', 'escheated_expiries', 'import_movements'],
  ],
  'the proof itself': ['audit', 'audit_head', 'book_verifications', 'migrations'],
  'the way to a voucher, which is proved by its key or its code': [
    ...['buckets', 'bucket_positions', 'keyring_keys', 'keyring_rotations', 'routing'],
  ],
  'work that is due, or what was done': [
    ...['jobs', 'job_rows', 'operator_requests', 'book_marks', 'book_horizon', 'voucher_expiries'],
    ...['voucher_extensions', 'voucher_imports', 'voucher_import_chunks', 'webhook_deliveries'],
    ...[
      'webhook_attempts',
      'batch_exports',
      'batch_export_ends',
      'batch_releases',
      'batch_sheets',
      'declines',
      'decline_counts',
    ],
    ...['api_key_days', 'approvals', 'manual_movements', 'product_holdings', 'till_bookings'],
  ],
  'who may sign in, of which no figure depends': [
    ...['users', 'sessions', 'sign_ins', 'sign_in_attempts', 'passkeys', 'recovery_codes', 'operator_tokens'],
  ],
};

test('every table is proved by the audit or in another way', async () => {
  const found = await run(`
    select relname as name from pg_class
    where relnamespace = 'scrip'::regnamespace and relkind in ('r', 'p') and not relispartition order by 1`);
  // A table may have parts that belong to different subjects.
  const set = new Set(Object.values(STATES).flatMap((parts) => parts.map(({ table }) => table)));
  const named = [...set, ...Object.values(OTHERS).flat()];
  assert.equal(new Set(named).size, named.length);
  assert.deepEqual(
    found.map(({ name }) => name).filter((name) => name !== 'moved_clock'),
    named.sort(),
  );
});
