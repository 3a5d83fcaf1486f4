import type { Service } from '../../context.ts';
import type { Refusal } from '../../refusal.ts';
import type { ListedDay } from '../days.ts';
import {
  bankEntries,
  bankReconciliation,
  bankStatements,
  generalLedger,
  merchantBalances,
  outstanding,
  trialBalance,
} from './balances.ts';
import { breakage } from './breakage.ts';
import {
  aging,
  agingByProduct,
  expiryMonths,
  expiryMonthsByProduct,
  issuerAcceptor,
  liability,
  liabilityByMonth,
} from './liability.ts';
import { allowLongReport } from './queries.ts';
import {
  type Breakdown,
  daysOf,
  type Maker,
  openScope,
  type Report,
  type Table,
  type Wanted,
  wrong,
} from './report.ts';
import { floatStatement, settlementStatement } from './statements.ts';
import { dormancy, unclaimed, vat } from './tax.ts';

/** The reports, by number and name (docs/explanation/books.md). R8 is streamed: see transactions.ts. */
type Kind = {
  readonly report: string;
  readonly name: string;
  readonly make: Maker;
  /** The report exists for closed days only: its data is made at the close. */
  readonly closedOnly?: true;
  /** The report can be restricted to one merchant. */
  readonly byMerchant?: true;
  /** Other makers of the report, which break its figures down. */
  readonly breakdowns?: Partial<Record<Breakdown, Maker>>;
};

const both =
  (...makers: readonly Maker[]): Maker =>
  async (scope) => {
    const tables = [];
    for (const make of makers) tables.push(...(await make(scope)));
    return tables;
  };

const liabilityOf: Maker = (scope) => (scope.isClosed ? both(liability, liabilityByMonth) : liability)(scope);

export const REPORTS: readonly Kind[] = [
  { report: 'R1', name: 'trial-balance', make: trialBalance, breakdowns: { merchant: merchantBalances } },
  { report: 'R2', name: 'liability', make: liabilityOf },
  { report: 'R3', name: 'outstanding', make: outstanding },
  {
    report: 'R4',
    name: 'aging',
    make: both(aging, expiryMonths),
    breakdowns: { product: both(agingByProduct, expiryMonthsByProduct) },
    closedOnly: true,
  },
  { report: 'R5', name: 'breakage', make: breakage },
  { report: 'R6', name: 'float-statement', make: floatStatement, byMerchant: true },
  { report: 'R7', name: 'settlement-statement', make: settlementStatement, byMerchant: true },
  { report: 'R9', name: 'issuer-acceptor', make: issuerAcceptor },
  { report: 'R10', name: 'dormancy', make: both(dormancy, unclaimed) },
  { report: 'R11', name: 'vat', make: vat, closedOnly: true },
  { report: 'R12', name: 'general-ledger', make: generalLedger, closedOnly: true },
  { report: 'R13', name: 'bank', make: both(bankReconciliation, bankStatements, bankEntries) },
];

/** The reports that can be broken down, for the message of a refusal. */
const BROKEN_DOWN = REPORTS.flatMap(({ report, breakdowns = {} }) =>
  Object.keys(breakdowns).map((each) => `${report} by ${each}`),
).join(' and ');

/** Returns the report of a number or name, or undefined if there is none. */
export function findReport(name: string): Kind | undefined {
  return REPORTS.find((each) => each.report === name.toUpperCase() || each.name === name);
}

/**
 * Returns the tables of one section, or all.
 * @throws Refusal `30` for a section that the report does not have
 */
function selectSection(tables: readonly Table[], section: string | undefined): readonly Table[] {
  if (section === undefined) return tables;
  const found = tables.filter((table) => table.section === section);
  const sections = [...new Set(tables.flatMap((table) => table.section ?? []))];
  if (found.length === 0 && tables.length > 0)
    throw wrong('section', 'no-section', `this report has ${sections.join(', ') || 'no sections'}`);
  return found;
}

/** Returns a refusal that names the first day that is not closed. */
function notClosed(name: string, days: readonly ListedDay[], { to }: Wanted): Refusal {
  const open = days.find(({ state }) => state !== 'closed')?.day ?? to;
  const message = `${open} is not closed, and ${name} is made of closed days only`;
  return wrong('to', 'not-closed', message, { day: open });
}

/**
 * Makes a report of an interval of days from aggregates. A report of closed days never changes.
 * @throws Refusal `30` for days that are not in the books, for days that are not closed if the report is of
 *   closed days only, for a merchant if the report cannot be restricted to one, and for a breakdown that it
 *   does not have
 */
export async function makeReport(service: Service, kind: Kind, wanted: Wanted): Promise<Report> {
  if (wanted.merchantId !== undefined && !kind.byMerchant)
    throw wrong(
      'merchantId',
      'all-merchants',
      `${kind.report} is of all merchants; R6, R7 and R8 are of one`,
    );
  const make = wanted.breakdown === undefined ? kind.make : kind.breakdowns?.[wanted.breakdown];
  if (!make)
    throw wrong(
      'breakdown',
      'no-breakdown',
      `${kind.report} is not broken down by ${wanted.breakdown}: ${BROKEN_DOWN} are`,
    );
  const days = await daysOf(service, wanted);
  return service.db.transaction(async (tx) => {
    for (const statement of allowLongReport) await tx.query(statement);
    const { scope, closingHash, madeAt } = await openScope(service, tx, wanted, days);
    if (kind.closedOnly && !scope.isClosed) throw notClosed(kind.name, days, wanted);
    const tables = selectSection(await make(scope), wanted.section);
    return {
      report: kind.report,
      name: kind.name,
      from: scope.from,
      to: wanted.to,
      startsAt: scope.startsAt,
      endsAt: scope.endsAt,
      zone: scope.zone,
      state: scope.isClosed ? 'closed' : 'provisional',
      closingHash,
      madeAt,
      sign: 'credit minus debit',
      tables,
    };
  }, 'repeatable read');
}
