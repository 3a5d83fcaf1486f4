import Type from 'typebox';
import { today } from '../ledger/zone.ts';
import { alone, changing, reading, tableOf } from '../operation.ts';
import { PAGE, Page, pageOf, readCursor } from '../page.ts';
import { MONEY, SEE } from '../principal.ts';
import { invalid, Problem } from '../problem.ts';
import {
  checkDay,
  Day,
  FileSchema,
  Input,
  Line,
  NullableText,
  Reason,
  Text,
  Time,
  toId,
  Word,
} from '../schema.ts';
import { latin } from '../settlement/pain.ts';
import { makePayoutFile, pageOfFiles, readAccounts } from '../settlement/payout-file.ts';
import { documentsOf, dueSettlements, getSettlement } from '../settlement/settlements.ts';
import { requireIban } from './bank.ts';
import { SettlementId } from './settlement-schema.ts';

/** Files of settlements: their frozen documents, and the payout file for the bank. */

const DOCUMENT_TYPES = { pdf: 'application/pdf', csv: 'text/csv; charset=utf-8' } as const;
const PAYOUT_TYPES = { pain001: 'application/xml', csv: 'text/csv; charset=utf-8' } as const;
const ENDINGS = { pain001: 'xml', csv: 'csv' } as const;

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
    '`name`, `iban`, `bic`, and must be those of the terms. The file is recorded with its SHA-256. A settlement ' +
    'that is in an earlier file is refused, unless it is named with `again` and a reason.',
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
        description: 'The settlements to pay; left out: all that are due and in no file.',
      }),
    ),
    due: Type.Optional(Day),
    again: Type.Optional(
      Type.Boolean({ description: 'Pay settlements of an earlier file, which the bank did not execute.' }),
    ),
    reason: Reason,
  }),
  output: FileSchema,
  files: ['application/xml', 'text/csv'],
  bodyMaxBytes: BODY_MAX_BYTES,
  roles: MONEY,
  approval: alone(
    'It pays only approved settlements, each once, to the accounts of terms that two people approved.',
  ),
  risk: 'step-up',
  async run(caller, { format, accounts: csv, payerName: name, settlements, due, again = false, ...given }) {
    const { db } = caller.service;
    const iban = requireIban(given.payerIban, 'payerIban');
    if (latin(name) === undefined) throw invalid('payerName', 'latin', 'has other letters than Latin ones');
    if (settlements !== undefined && due !== undefined)
      throw invalid('due', 'dependent', 'belongs to a request that names no settlements');
    checkDay(due, 'due');
    const reason = given.reason ?? null;
    if (again && settlements === undefined)
      throw invalid('again', 'dependent', 'belongs to a request that names settlements');
    if (again && reason === null) throw invalid('reason', 'required', 'is required with again');
    const accounts = readAccounts(csv);
    const ids =
      settlements?.map((each) => toId(each, 'settlements')) ??
      (await dueSettlements(db, due ?? (await today(caller.service))));
    const payer = { name, iban, bic: given.payerBic ?? null };
    const againBecause = again ? reason : null;
    const { id, content } = await makePayoutFile(caller, { ids, format, accounts, payer, againBecause });
    return { name: `payouts-${id}.${ENDINGS[format]}`, mediaType: PAYOUT_TYPES[format], content };
  },
});

const files = reading({
  name: 'settlement.files',
  summary: 'List the payout files that were made, newest first',
  description:
    'The files themselves are not stored. The SHA-256 shows whether a file is the one that was made.',
  method: 'GET',
  path: '/payout-files',
  command: 'settlement files',
  input: Input({ ...PAGE }),
  output: Page(
    Type.Object({
      id: Text,
      madeAt: Time,
      madeBy: Text,
      format: Word(['pain001', 'csv']),
      settlements: Type.Array(Text),
      again: NullableText,
      sha256: Text,
    }),
  ),
  columns: ['id', 'madeAt', 'madeBy', 'format', 'settlements'],
  roles: SEE,
  async run({ service }, { cursor, limit = 50 }) {
    const [before] = readCursor('payout files', {}, cursor) ?? [];
    const found = await pageOfFiles(service.readDb, before === undefined ? null : Number(before), limit + 1);
    const items = found.map((each) => ({
      id: String(each.id),
      madeAt: each.made_at,
      madeBy: each.made_by,
      format: each.format,
      settlements: [...each.settlements],
      again: each.again_because,
      sha256: each.digest.toString('hex'),
    }));
    return pageOf('payout files', {}, items, limit, ({ id }) => [Number(id)]);
  },
});

export const settlementDocuments = { document, file, files };

export const SETTLEMENT_DOCUMENTS = tableOf(document, file, files);
