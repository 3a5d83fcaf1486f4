import { streamTransactions } from '../../src/books/reports/transactions.ts';
import type { Service } from '../../src/context.ts';
import { sql } from '../../src/db/sql.ts';
import { ACCOUNT_KINDS } from '../../src/ledger/kinds.ts';
import { listFloats } from '../../src/merchants/merchants.ts';
import { cents, make, type Row, rowsOf } from './reports.ts';

/** The identities that hold between the reports (docs/explanation/books.md), in one currency. */

/** The account numbers of the general ledger, in the order of the kinds. */
export const FIRST_ACCOUNT = 1_000;

const sum = (rows: readonly Row[], ...columns: string[]) =>
  rows.reduce((total, row) => columns.reduce((part, column) => part + cents(row[column]), total), 0n);

type Held = Readonly<Record<string, boolean>>;

/** R1, R3 and R12: accounts by day. */
async function accounts(service: Service, days: readonly string[]): Promise<Held> {
  const [first = '', ...rest] = days;
  const last = rest.at(-1) ?? '';
  const whole = rowsOf(await make(service, 'R1', { from: first, to: last }));
  const closings = async (to: string) =>
    new Map(
      rowsOf(await make(service, 'R1', { from: first, to })).map((row) => [row['account'], row['closing']]),
    );
  let carried = true;
  let isZero = sum(whole.slice(0, -1), 'closing') === 0n;
  for (const day of rest.slice(0, -1)) {
    const before = await closings(day);
    const after = rowsOf(await make(service, 'R1', { from: day, to: last }));
    isZero &&= sum(after.slice(0, -1), 'closing') === 0n;
    for (const row of after) carried &&= row['opening'] === (before.get(row['account']) ?? '0.00');
  }
  const outstanding = rowsOf(await make(service, 'R3', { from: first, to: last }));
  const evening = outstanding.at(-1);
  const of = (kind: string) => whole.find(({ account }) => account === kind)?.['closing'] ?? '0.00';
  const balances = await service.db.query<{ kind: string; minor: bigint }>(sql`
    select account_kind as kind, sum(balance_minor)::bigint as minor
    from balances_at(${last}::timestamptz) group by 1`);
  const held = new Map(balances.map(({ kind, minor }) => [kind, minor]));
  const ledger = rowsOf(await make(service, 'R12', { from: first, to: last }));
  return {
    'R1 sums to zero': isZero,
    'R1 opens with the closing of the day before': carried,
    'R3 owed and own are the money': outstanding.every(
      ({ owed, own, minusFunding }) => cents(owed) + cents(own) === cents(minusFunding),
    ),
    'R3 ends with R1':
      cents(evening?.['minusFunding']) === -cents(of('FUNDING')) &&
      evening?.['outstanding'] === of('VOUCHER'),
    'R12 is what the accounts moved':
      sum(ledger, 'debit') === sum(ledger, 'credit') &&
      ACCOUNT_KINDS.every((kind, at) => {
        const own = ledger.filter(({ account }) => account === String(FIRST_ACCOUNT + at));
        return sum(own, 'credit') - sum(own, 'debit') === (held.get(kind) ?? 0n);
      }),
  };
}

/** The balances of the accounts of a kind at the end, by merchant or by issuer of vouchers. */
async function balancesOf(service: Service, until: string, kind: string) {
  const rows = await service.db.query<{ owner: number; minor: bigint }>(sql`
    select greatest(merchant_id, issuer_id) as owner, sum(balance_minor)::bigint as minor
    from balances_at(${until}::timestamptz) where account_kind = ${kind} group by 1`);
  return new Map(rows.map(({ owner, minor }) => [String(owner), minor]));
}

/** Whether the closing balances of a report are the balances of the accounts. */
function areBalances(rows: readonly Row[], owner: string, balances: ReadonlyMap<string, bigint>): boolean {
  const owners = new Set([...balances.keys(), ...rows.map((row) => row[owner] ?? '')]);
  return [...owners].every(
    (id) =>
      sum(
        rows.filter((row) => row[owner] === id),
        'closing',
      ) === (balances.get(id) ?? 0n),
  );
}

/** R2, R4 and R5: vouchers. */
async function vouchers(service: Service, days: readonly string[]): Promise<Held> {
  const [from = '', to = ''] = [days[0], days.at(-1)];
  const report = await make(service, 'R2', { from, to });
  const products = rowsOf({ ...report, tables: report.tables.filter(({ section }) => !section) });
  const closing = sum(products, 'closing');
  const ages = rowsOf(await make(service, 'R4', { from, to }));
  const aged = (basis: string) =>
    sum(
      ages.filter((row) => row['basis'] === basis),
      'outstanding',
    );
  const booked = rowsOf(await make(service, 'R5', { from, to }), 'booked');
  const trial = rowsOf(await make(service, 'R1', { from, to }));
  const of = (kind: string) => trial.find(({ account }) => account === kind);
  const cohorts = rowsOf(await make(service, 'R5', { from, to }), 'cohorts');
  return {
    'R2 ends with R1': closing === cents(of('VOUCHER')?.['closing'] ?? '0.00'),
    'R2 is what vouchers held': areBalances(products, 'issuerId', await balancesOf(service, to, 'VOUCHER')),
    'R2 months are R2': sum(rowsOf(report, 'months'), 'closing') === closing,
    'R4 is R2': aged('expires') === closing && aged('idle') === closing,
    'R5 expired is R2':
      sum(booked, 'expired') === sum(products, 'expired') &&
      sum(booked, 'reinstated') === sum(products, 'reinstated'),
    'R5 cohorts are R2': sum(cohorts, 'outstanding') === closing,
  };
}

/** R6 to R9: merchants. */
async function settled(
  service: Service,
  days: readonly string[],
  merchants: readonly number[],
): Promise<Held> {
  const [from = '', to = ''] = [days[0], days.at(-1)];
  let floats = true;
  let lines = true;
  const totals = rowsOf(await make(service, 'R7', { from, to })).filter(({ product }) => product === 'total');
  for (const merchantId of merchants) {
    const statement = rowsOf(await make(service, 'R6', { from, to, merchantId }));
    const [float] = await listFloats(service.db, merchantId);
    floats &&= cents(statement.at(-1)?.['balance'] ?? '0.00') === (float?.balance ?? 0n);
    let redeemed = 0n;
    for await (const line of streamTransactions(service, { from, to, merchantId }))
      if (line.kind === 'REDEMPTION') redeemed += cents(String(line.amount));
    const own = totals.find((row) => row['merchantId'] === String(merchantId));
    lines &&= redeemed === cents(own?.['redeemed'] ?? '0.00');
  }
  const report = await make(service, 'R2', { from, to });
  const products = rowsOf({ ...report, tables: report.tables.filter(({ section }) => !section) });
  const matrix = rowsOf(await make(service, 'R9', { from, to }));
  const issuers = [...new Set([...matrix, ...products].map(({ issuerId }) => issuerId))];
  const acceptors = [
    ...new Set([...matrix.map((row) => row['acceptorId']), ...totals.map((row) => row['merchantId'])]),
  ];
  const trial = rowsOf(await make(service, 'R1', { from, to })).find(
    (row) => row['account'] === 'SETTLEMENT',
  );
  return {
    'R6 is the stored float': floats,
    'R7 ends with R1': sum(totals, 'closing') === cents(trial?.['closing'] ?? '0.00'),
    'R7 is what the accounts held': areBalances(
      totals,
      'merchantId',
      await balancesOf(service, to, 'SETTLEMENT'),
    ),
    'R8 is R7': lines,
    'R9 rows are R2': issuers.every((id) => {
      const own = products.filter((row) => row['issuerId'] === id);
      const rows = matrix.filter((row) => row['issuerId'] === id);
      return sum(rows, 'redeemed') === sum(own, 'redeemed') && sum(rows, 'reversed') === sum(own, 'reversed');
    }),
    'R9 columns are R7': acceptors.every((id) => {
      const own = totals.filter((row) => row['merchantId'] === id);
      const rows = matrix.filter((row) => row['acceptorId'] === id);
      return sum(rows, 'net') === sum(own, 'redeemed') - sum(own, 'reversed', 'earlierReversed');
    }),
  };
}

const DAYS = Array.from({ length: 7 }, (_, at) => `2026-03-0${at + 2}`);

/** The identities that do not hold over the closed days of test/books/books.tampering.test.ts. */
export async function brokenIdentities(service: Service, merchants: readonly number[]): Promise<string[]> {
  const held = {
    ...(await accounts(service, DAYS)),
    ...(await vouchers(service, DAYS)),
    ...(await settled(service, DAYS, merchants)),
  };
  return Object.entries(held).flatMap(([name, holds]) => (holds ? [] : [name]));
}
