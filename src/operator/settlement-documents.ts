import Type from 'typebox';
import { isIban } from '../bank/iban.ts';
import { today } from '../ledger/zone.ts';
import { alone, changing, reading, tableOf } from '../operation.ts';
import { MONEY, SEE } from '../principal.ts';
import { invalid, Problem } from '../problem.ts';
import { checkDay, Day, FileSchema, Input, Line, Reason, toId, Word } from '../schema.ts';
import { makePayoutFile, readAccounts } from '../settlement/payout-file.ts';
import { documentsOf, dueSettlements, getSettlement } from '../settlement/settlements.ts';
import { SettlementId } from './settlement-schema.ts';

/** Files of settlements: their frozen documents, and the payout file for the bank. */

const DOCUMENT_TYPES = { pdf: 'application/pdf', csv: 'text/csv; charset=utf-8' } as const;
const PAYOUT_TYPES = { pain001: 'application/xml', csv: 'text/csv; charset=utf-8' } as const;
const PAYOUT_NAMES = { pain001: 'payouts.xml', csv: 'payouts.csv' } as const;

const document = reading({
  name: 'settlement.document',
  summary: 'Get the document of an approved settlement',
  method: 'GET',
  path: '/settlements/:id/document',
  command: 'settlement document',
  input: Input({ id: SettlementId, format: Word(['pdf', 'csv'], { examples: ['pdf'] }) }),
  output: FileSchema,
  files: ['application/pdf', 'text/csv'],
  roles: SEE,
  async run({ service }, { id, format }) {
    const settlement = await getSettlement(service.readDb, toId(id));
    const documents = await documentsOf(service.readDb, settlement);
    if (!documents)
      throw new Problem(
        'conflict',
        `settlement ${id} is a draft: its documents are made when it is approved`,
      );
    return {
      name: `settlement-${settlement.number}.${format}`,
      mediaType: DOCUMENT_TYPES[format],
      content: documents[format],
    };
  },
});

const IBAN_MAX = 50;
const ACCOUNTS_MAX = 1_000_000;
const SETTLEMENTS_MAX = 1_000;
/** Large enough for the accounts and the JSON around them. */
const BODY_MAX_BYTES = 2 * 1024 * 1024;

const file = changing({
  name: 'settlement.file',
  summary: 'Make a file that pays settlements, for your bank; it books nothing',
  description:
    'Account numbers are not stored: they are sent with each request, as CSV with the columns `merchantId`, ' +
    '`name`, `iban`, `bic`.',
  method: 'POST',
  path: '/settlements/file',
  command: 'settlement file',
  input: Input({
    format: Word(['pain001', 'csv']),
    accounts: Type.String({
      minLength: 1,
      maxLength: ACCOUNTS_MAX,
      description: 'The accounts of the merchants, as CSV.',
      examples: ['merchantId,name,iban,bic\n5,Kiosk,DE89370400440532013000,\n'],
    }),
    payerName: Line(70, 'The owner of your account.', 'Operator Ltd'),
    payerIban: Line(IBAN_MAX, 'Your account.', 'DE89370400440532013000'),
    payerBic: Type.Optional(Type.String({ pattern: '^[A-Z0-9]{4}[A-Z]{2}[A-Z0-9]{2}([A-Z0-9]{3})?$' })),
    settlements: Type.Optional(
      Type.Array(SettlementId, {
        minItems: 1,
        maxItems: SETTLEMENTS_MAX,
        uniqueItems: true,
        description: 'The settlements to pay; left out: all that are due.',
      }),
    ),
    due: Type.Optional(Day),
    reason: Reason,
  }),
  output: FileSchema,
  files: ['application/xml', 'text/csv'],
  bodyMaxBytes: BODY_MAX_BYTES,
  roles: MONEY,
  approval: alone('The bank asks its own people for approval, and the payment is booked by two people.'),
  risk: 'step-up',
  async run(caller, { format, accounts: csv, payerName: name, payerIban, payerBic, settlements, due }) {
    const { db } = caller.service;
    const iban = payerIban.replaceAll(' ', '').toUpperCase();
    if (!isIban(iban))
      throw invalid('payerIban', 'iban', 'is not an IBAN: its check digits or its form are wrong');
    if (settlements !== undefined && due !== undefined)
      throw invalid('due', 'dependent', 'belongs to a request that names no settlements');
    checkDay(due, 'due');
    const accounts = readAccounts(csv);
    const ids = settlements?.map((each) => toId(each, 'settlements'));
    const paid = ids
      ? await Promise.all(ids.map((each) => getSettlement(db, each)))
      : await dueSettlements(db, due ?? (await today(caller.service)));
    const payer = { name, iban, bic: payerBic ?? null };
    const content = await makePayoutFile(caller, paid, { format, accounts, payer });
    return { name: PAYOUT_NAMES[format], mediaType: PAYOUT_TYPES[format], content };
  },
});

export const settlementDocuments = { document, file };

export const SETTLEMENT_DOCUMENTS = tableOf(document, file);
