import { test } from 'node:test';
import { readCamt } from '../../src/bank/camt.ts';
import { readBankCsv } from '../../src/bank/csv.ts';
import type { Entry, Movement } from '../../src/bank/entries.ts';
import { exactPairs, suggestedPairs } from '../../src/bank/match.ts';
import { readAccounts } from '../../src/settlement/payout-file.ts';
import { assertLinear, trying } from '../support/growth.ts';

/** Documents that people send: twice the document takes about twice the work, whatever it contains. */

const LONGEST = 256 * 1_024;

type Make = (length: number) => string;

const repeat =
  (piece: string, start = '', end = ''): Make =>
  (length) =>
    start + piece.repeat(Math.max(0, Math.floor((length - start.length - end.length) / piece.length))) + end;

/** Numbers the pieces, so that no two are equal. */
const number =
  (piece: (index: number) => string, start = '', end = ''): Make =>
  (length) => {
    const pieces: string[] = [];
    for (let left = length - start.length - end.length, index = 0; left > 0; index++) {
      pieces.push(piece(index));
      left -= piece(index).length;
    }
    return start + pieces.join('') + end;
  };

const OPEN = '<Document><BkToCstmrStmt><Stmt>';
const CLOSED = '</Stmt></BkToCstmrStmt></Document>';
const inStatement = (piece: string, start = '', end = '') => repeat(piece, OPEN + start, end + CLOSED);
const ENTRY =
  '<Ntry><Sts>BOOK</Sts><Amt Ccy="EUR">1</Amt><CdtDbtInd>CRDT</CdtDbtInd>' +
  '<BookgDt><Dt>2026-01-01</Dt></BookgDt><AcctSvcrRef>';

const CAMT: Readonly<Record<string, Make>> = {
  'different attributes': number((index) => ` a${index}="1"`, `${OPEN}<Ntry`, `/>${CLOSED}`),
  'different attributes, without an end': number((index) => ` a${index}="1"`, `${OPEN}<Ntry`),
  'one attribute many times': inStatement(' a="1"', '<Ntry', '/>'),
  'attributes without values': number((index) => ` a${index}`, `${OPEN}<Ntry`, `/>${CLOSED}`),
  'attributes named like those of Object': inStatement(' __proto__="1"', '<Ntry', '/>'),
  'a long attribute': inStatement('=', '<Ntry a="', '"/>'),
  'a long attribute, without an end': repeat('=', `${OPEN}<Ntry a="`),
  'spaces in a tag': repeat(' ', `${OPEN}<Ntry`),
  'elements within each other': repeat('<a>'),
  'closing tags': inStatement('</a>'),
  'different elements': number((index) => `<t${index}/>`, OPEN, CLOSED),
  'one element many times': inStatement('<q/>'),
  'text and elements': inStatement('x<b/>', '<Ntry>', '</Ntry>'),
  'open brackets': repeat('<'),
  'closed brackets': repeat('>'),
  ampersands: inStatement('&', '<X>', '</X>'),
  'half entities': inStatement('&#', '<X>', '</X>'),
  'entities of one character': inStatement('&#65;', '<X>', '</X>'),
  comments: inStatement('<!---->'),
  'comments without an end': repeat('<!--', OPEN),
  'sections of text': inStatement('<![CDATA[x]]>', '<X>', '</X>'),
  'a section of text without an end': repeat(']', `${OPEN}<X><![CDATA[`),
  instructions: inStatement('<?x?>'),
  'instructions without an end': repeat('<?x', OPEN),
  'declared entities': number((index) => `<!ENTITY e${index} "x">`, '<!DOCTYPE a [', ']><Document/>'),
  'one entity, used many times': (length) =>
    `<!DOCTYPE a [<!ENTITY a "${'a'.repeat(length / 2)}">]>${OPEN}<X>${'&a;'.repeat(length / 6)}</X>${CLOSED}`,
  'entities that contain entities': (length) =>
    `<!DOCTYPE a [<!ENTITY a "aaaa">${number((index) => `<!ENTITY b${index} "&a;&b${index - 1};&b${index - 1};">`)(length / 2)}` +
    `]>${OPEN}<X>${'&b9;'.repeat(length / 8)}</X>${CLOSED}`,
  'a name of many parts': inStatement('a:', '<', '/>'),
  'a long amount': inStatement('1', '<Ntry><Sts>BOOK</Sts><Amt Ccy="EUR">', '</Amt></Ntry>'),
  'entries without fields': inStatement('<Ntry><Sts>BOOK</Sts></Ntry>'),
  entries: number((index) => `${ENTRY}${index}</AcctSvcrRef></Ntry>`, OPEN, CLOSED),
  'one entry many times': inStatement(`${ENTRY}1</AcctSvcrRef></Ntry>`),
  'texts of an entry': inStatement(
    '<Ustrd>x</Ustrd>',
    `${ENTRY}1</AcctSvcrRef><NtryDtls><TxDtls><RmtInf>`,
    '</RmtInf></TxDtls></NtryDtls></Ntry>',
  ),
};

const HEADER = 'date,amount\n';
const CSV: Readonly<Record<string, Make>> = {
  quotes: repeat('"', HEADER),
  'quotes in a field': repeat('""', `${HEADER}"`),
  commas: repeat(',', HEADER),
  lines: repeat('\n', HEADER),
  'ends of lines of another system': repeat('\r', HEADER),
  'many columns': number((index) => `h${index},`, '', '\n1,2'),
  'many columns and rows': (length) =>
    `${number((index) => `h${index},`)(length / 2)}\n${'1,\n'.repeat(length / 6)}`,
  'rows with more fields than the header': repeat('2026-01-01,2,3\n', HEADER),
  'rows with errors': repeat('a,b\n', HEADER),
  'one row many times': repeat('2026-01-01,1\n', HEADER),
  'spaces in an amount': repeat(' ', `${HEADER}2026-01-01,"1`, '2"\n'),
  'groups of digits': repeat(',111', `${HEADER}2026-01-01,"1`, 'x"\n'),
  'byte order marks': repeat('\ufeff', HEADER),
};

const MAPPING = {
  date: 'date',
  dateFormat: 'YYYY-MM-DD',
  amount: 'amount',
  decimal: '.',
  texts: [] as string[],
  entryReference: null,
  delimiter: ',',
  encoding: 'utf-8',
} as const;
const EUR = { currency: 'EUR', decimals: 2, number: null };

async function assertReads(texts: Readonly<Record<string, Make>>, read: (bytes: Buffer) => unknown) {
  for (const [name, make] of Object.entries(texts))
    await assertLinear(name, LONGEST, (length) => {
      const bytes = Buffer.from(make(length));
      return trying(() => read(bytes));
    });
}

test('a statement of the bank in XML is read in linear time', () =>
  assertReads(CAMT, (bytes) => readCamt(bytes, EUR)));

test('a statement of the bank in CSV is read in linear time', () =>
  assertReads(CSV, (bytes) => readBankCsv(bytes, MAPPING, EUR)));

test('the accounts of a payout file are read in linear time', async () => {
  const texts = Object.entries(CSV).map(([name, make]): [string, Make] => [
    name,
    (length) => make(length).replace('date,amount', 'merchantId,name,iban,bic'),
  ]);
  await assertReads(Object.fromEntries(texts), (bytes) => readAccounts(bytes.toString()));
});

/** About as many characters as an entry and a movement have. */
const SIDE_LENGTH = 64;

/**
 * Entries and movements, of which all have the same amount.
 * @param reference of the movement with a number
 */
const sides = (length: number, reference: (index: number) => string) => {
  const numbers = Array.from({ length: Math.ceil(length / SIDE_LENGTH) }, (_, index) => index);
  const same = { amount: 100_000n, currency: 'EUR' };
  const entries = numbers.map((index) => ({
    ...{ ...same, bookedOn: '2026-03-02', reference: `B-${index}` },
    description: `payment for ${reference(index)}, thank you`,
  }));
  const movements = numbers.map((index) => ({
    ...{ ...same, day: '2026-03-01', reference: reference(index), bankReference: null, settlement: null },
  }));
  return [entries as unknown as Entry[], movements as unknown as Movement[]] as const;
};

test('entries of the bank are matched in linear time, though thousands have one amount', async () => {
  for (const find of [exactPairs, suggestedPairs])
    for (const [name, reference] of Object.entries({
      'different references': (index: number) => `TOPUP-${index}`,
      'references with the same words': (index: number) => `top up no ${index} for payment`,
    }))
      await assertLinear(`${find.name}: ${name}`, LONGEST, (length) => {
        const [entries, movements] = sides(length, reference);
        return () => find(entries, movements);
      });
});
