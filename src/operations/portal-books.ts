import type { TObject, TSchema } from 'typebox';
import { findLines, findReport, report, reportCsvFile } from '../books/reports/reports.ts';
import type { AnyOperation, Caller, Operation } from '../operation.ts';
import { Input, Word } from '../schema.ts';
import { disputes } from '../settlement/disputes.ts';
import { settlementDocument } from '../settlement/document.ts';
import { findMerchantOf, ownSettlements, withoutPeople } from '../settlement/settlements.ts';
import { showSettlement } from '../settlement/show.ts';
import { bound, FINANCE, MONEY, NO_COMMAND, ownIdOf } from './portal-binding.ts';

/** The books as a merchant sees them: its approved settlements, and its statements. */

const ofSettlement = {
  noun: 'settlement',
  field: 'id',
  of: ({ service }: Caller, id: string) => findMerchantOf(service.readDb, id),
};

/** Whether a report can be restricted to one merchant. */
const isOfMerchant = (name: string) => (findReport(name) ?? findLines(name))?.ofMerchant !== undefined;

function ownReport<Output extends TSchema>(
  made: Operation<typeof reportCsvFile.input, Output>,
): AnyOperation {
  const { from, to, european } = made.input.properties;
  const path = made.path as string;
  const names = (made.input.properties.report as unknown as { enum: string[] }).enum;
  const input = Input({
    report: Word(names.filter(isOfMerchant), { description: 'Its number or its name.', examples: ['R6'] }),
    from,
    to,
    ...(path.endsWith('/csv') && { european }),
  });
  return {
    ...(made as unknown as AnyOperation),
    command: NO_COMMAND,
    roles: MONEY,
    input: input as unknown as TObject,
    run: (caller, given) => made.run(caller, { ...given, merchantId: ownIdOf(caller) } as never),
  };
}

const ownSettlement: typeof showSettlement = {
  ...showSettlement,
  run: async (caller, input) => withoutPeople(await showSettlement.run(caller, input)),
};

export const PORTAL_BOOKS: readonly AnyOperation[] = [
  bound(ownSettlements, { path: '/settlements', roles: MONEY, merchant: 'merchantId' }),
  bound(ownSettlement, { path: '/settlements/:id', roles: MONEY, owner: ofSettlement }),
  bound(settlementDocument, { path: '/settlements/:id/document', roles: MONEY, owner: ofSettlement }),
  bound(disputes.dispute, { path: '/settlements/:id/dispute', roles: FINANCE, owner: ofSettlement }),
  bound(disputes.list, { path: '/disputes', roles: MONEY, merchant: 'merchantId' }),
  ownReport(report as never),
  ownReport(reportCsvFile),
];
