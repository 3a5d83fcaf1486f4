import Type, { type TObject, type TSchema } from 'typebox';
import { type AnyOperation, type Caller, type Operation, reading } from '../operation.ts';
import { books } from '../operator/books.ts';
import { booksFiles } from '../operator/books-files.ts';
import { disputes } from '../operator/disputes.ts';
import { settlementDocuments } from '../operator/settlement-documents.ts';
import { withoutPeople } from '../operator/settlement-schema.ts';
import { pageOfSettlementsJson, settlements } from '../operator/settlements.ts';
import { PAGE } from '../page.ts';
import { Input, toId, Word } from '../schema.ts';
import { findVisibleSettlement } from '../settlement/settlements.ts';
import { bound, FINANCE, MONEY, NO_COMMAND, ownIdOf } from './portal-binding.ts';

/** The books as a merchant sees them: its approved settlements, and its statements. */

const ofSettlement = {
  noun: 'settlement',
  field: 'id',
  of: async ({ service }: Caller, id: string) =>
    (await findVisibleSettlement(service.readDb, toId(id)))?.merchantId,
};

/** The reports that can be restricted to one merchant. */
const REPORTS_OF_MERCHANTS = ['R6', 'float-statement', 'R7', 'settlement-statement'] as const;

function ownReport<Output extends TSchema>(
  made: Operation<typeof booksFiles.report.input, Output>,
  reports: readonly string[],
): AnyOperation {
  const { from, to, european } = made.input.properties;
  const path = made.path as string;
  const input = Input({
    report: Word(reports, { description: 'Its number or its name.', examples: ['R6'] }),
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

const APPROVED = ['APPROVED', 'PAID', 'RETURNED'] as const;

const ownSettlements = reading({
  ...settlements.list,
  command: NO_COMMAND,
  roles: MONEY,
  input: Input({ ...PAGE, state: Type.Optional(Word(APPROVED)) }),
  async run(caller, { cursor, limit, state }) {
    const own = { merchantId: ownIdOf(caller), states: state ? [state] : APPROVED };
    const page = await pageOfSettlementsJson(caller, own, { cursor, limit });
    return { ...page, items: page.items.map(withoutPeople) };
  },
});

const ownSettlement = reading({
  ...settlements.show,
  run: async (caller, input) => withoutPeople(await settlements.show.run(caller, input)),
});

export const PORTAL_BOOKS: readonly AnyOperation[] = [
  ownSettlements as unknown as AnyOperation,
  bound(ownSettlement, { path: '/settlements/:id', roles: MONEY, owner: ofSettlement }),
  bound(settlementDocuments.document, {
    path: '/settlements/:id/document',
    roles: MONEY,
    owner: ofSettlement,
  }),
  bound(disputes.dispute, { path: '/settlements/:id/dispute', roles: FINANCE, owner: ofSettlement }),
  bound(disputes.list, { path: '/disputes', roles: MONEY, merchant: 'merchantId' }),
  ownReport(books.report as never, REPORTS_OF_MERCHANTS),
  ownReport(booksFiles.report, [...REPORTS_OF_MERCHANTS, 'R8', 'transactions']),
];
