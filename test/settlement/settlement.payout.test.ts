import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { streamTransactions } from '../../src/books/reports/transactions.ts';
import { cashOut } from '../../src/books/vouchers.ts';
import { reconcile } from '../../src/ledger/reconcile.ts';
import { updateRedemption } from '../../src/redemptions/update.ts';
import { setLetterhead } from '../../src/settings/letterhead.ts';
import { approve } from '../../src/settlement/approve.ts';
import { documentsOf, drawStatement, readLetter } from '../../src/settlement/document.ts';
import { draftAll, draftSettlements } from '../../src/settlement/draft.ts';
import { bankDay } from '../../src/settlement/pain.ts';
import { pay, returned } from '../../src/settlement/pay.ts';
import { makePayoutFile, payoutFiles, readAccounts } from '../../src/settlement/payout-file.ts';
import { dueSettlements } from '../../src/settlement/settlements.ts';
import { linesOf, ratesOf } from '../../src/settlement/show.ts';
import { proveSound } from '../support/books.ts';
import { assertDescribed } from '../support/described.ts';
import { readSheet } from '../support/print.ts';
import { close, dollars, draftedDay, openScene, terms, tradedDay } from '../support/settlements.ts';
import { schemaCheck } from '../support/verifiers.ts';

const IBAN = 'DE89370400440532013000';

test('approval fixes the number and the documents of a settlement, byte for byte', async (t) => {
  const scene = await openScene(t);
  const { ledger, shop } = scene;
  const { db } = ledger.started.service;
  const draft = await draftedDay(scene);
  const { settlement, replayed } = await approve(ledger.operator, draft.id);
  assert.deepEqual(
    [settlement.state, settlement.number, replayed],
    ['APPROVED', `${shop.merchant.id}-2026-0001`, false],
  );
  assert.equal((await approve(ledger.operator, draft.id)).replayed, true);
  const documents = await documentsOf(db, settlement);
  assert.ok(documents);
  assert.equal(createHash('sha256').update(documents.csv).digest('hex'), settlement.contentHash);
  assert.match(documents.csv, /,DEFAULT,REDEMPTION,2,100\.10,/);
  assert.match(documents.csv, /,,PAYABLE,,97\.10,2026-03-04,[0-9a-f]{64}\r\n$/);
  const { number, approvedAt, contentHash } = settlement;
  assert.ok(number && approvedAt && contentHash);
  const lines = await linesOf(db, settlement);
  const again = await drawStatement(
    { ...settlement, number, approvedAt, contentHash },
    lines,
    await ratesOf(db, settlement),
    await readLetter(db, settlement),
  );
  assert.ok(again.equals(documents.pdf));
  assert.equal(documents.pdf.toString('latin1', 0, 5), '%PDF-');
  assert.deepEqual(await draftAll(ledger.operator, undefined), []);
});

test('the transactions of a merchant name the settlement that holds them', async (t) => {
  const scene = await openScene(t);
  const { ledger, shop } = scene;
  const merchantId = shop.merchant.id;
  const left = await tradedDay(scene);
  await close(ledger);
  const cash = { merchantId, serialNumber: left.serial, amountMinor: null, reference: 'cash' };
  await cashOut(ledger.operator, cash);
  const shown = async () => {
    const lines = [];
    const wanted = { from: '2026-03-01', to: '2026-03-03', merchantId };
    for await (const { kind, amount, settlement } of streamTransactions(ledger.started.service, wanted))
      lines.push([kind, amount, settlement]);
    return lines;
  };
  const [draft] = await draftSettlements(ledger.operator, { merchantId });
  const open = [
    ['REDEMPTION', '60.00', null],
    ['REDEMPTION', '40.10', null],
    ['CASH_OUT', '19.90', null],
  ];
  assert.deepEqual(await shown(), open);
  await approve(ledger.operator, draft?.id ?? 0);
  const number = `${merchantId}-2026-0001`;
  assert.deepEqual(
    await shown(),
    open.map(([kind, amount]) => [kind, amount, kind === 'CASH_OUT' ? null : number]),
  );
});

test('a payout is booked once, returned once, and can then be paid again', async (t) => {
  const scene = await openScene(t);
  const { ledger } = scene;
  const { operator } = ledger;
  const draft = await draftedDay(scene);
  const wanted = {
    settlementId: draft.id,
    reference: 'payout 1',
    bankReference: 'B-1',
    valueDate: '2026-03-02',
  };
  await assert.rejects(pay(operator, wanted), { code: '58' });
  await approve(operator, draft.id);
  const paid = await pay(operator, wanted);
  assert.deepEqual([paid.replayed, paid.settlement.state], [false, 'PAID']);
  const repeated = await pay(operator, wanted);
  assert.deepEqual([repeated.replayed, repeated.transactionId], [true, paid.transactionId]);
  await assert.rejects(pay(operator, { ...wanted, bankReference: 'B-2' }), { code: '94' });
  await assert.rejects(pay(operator, { ...wanted, reference: 'payout 2' }), { code: '58' });

  const back = { ...wanted, reference: 'return 1' };
  assert.equal((await returned(operator, back)).settlement.state, 'RETURNED');
  assert.equal((await returned(operator, back)).replayed, true);
  assert.equal((await pay(operator, { ...wanted, reference: 'payout 3' })).settlement.state, 'PAID');
  const [sum] = await ledger.sql<{ sum: string }>(
    `
      select sum(case kind when 'PAYOUT' then amount_minor else -amount_minor end)::text as sum
        from scrip.journal
     where kind in ('PAYOUT', 'PAYOUT_RETURN')`,
  );
  assert.equal(sum?.sum, '9710');
  await ledger.at('2026-03-03T00:20:00Z');
  await close(ledger);
  await proveSound(ledger.started.service);
});

test('a payout is booked even if later reversals leave less on the settlement account', async (t) => {
  const scene = await openScene(t);
  const { ledger, shop } = scene;
  const { operator } = ledger;
  const draft = await draftedDay(scene);
  await approve(operator, draft.id);
  await ledger.at('2026-03-02T11:00:00Z');
  const asking = { ...shop, now: ledger.started.service.clock() };
  await updateRedemption(asking, { reference: 'sale 2', amountUsed: 0 });
  const bank = { bankReference: 'B-1', valueDate: '2026-03-02' };
  await pay(operator, { settlementId: draft.id, reference: 'payout 1', ...bank });
  await ledger.at('2026-03-03T00:20:00Z');
  await close(ledger);
  const [next] = await draftSettlements(operator, { merchantId: shop.merchant.id });
  // 40.10 less the commission on it, 1.00 and 0.20, are carried over to the next redemptions.
  assert.deepEqual(next && [dollars(next.closing), dollars(next.payable)], ['-38.90', '0.00']);
  assert.equal((await reconcile(ledger.started.service)).ok, true);
});

test('the statement cuts neither headings nor large amounts', async (t) => {
  const scene = await openScene(t);
  const { ledger } = scene;
  const draft = await draftedDay(scene);
  const { settlement } = await approve(ledger.operator, draft.id);
  const { number, approvedAt, contentHash } = settlement;
  assert.ok(number && approvedAt && contentHash);
  const kinds = ['REDEMPTION', 'REDEMPTION_REVERSAL', 'EARLIER_REVERSAL', 'FEE', 'FEE_VAT', 'CASH_OUT'];
  const lines = kinds.map((kind, at) => {
    const amount = -123_456_789_012_345n - BigInt(at);
    return { line: at + 1, product: 'GIFT', productName: 'A gift card', kind, rows: 1_234_567 + at, amount };
  });
  const letter = await readLetter(ledger.started.service.db, settlement);
  const approved = { ...settlement, number, approvedAt, contentHash, outstanding: 1n };
  const pdf = await drawStatement(approved, lines, [], letter);
  const [page] = await readSheet(pdf);
  const words = ['Redemptions', 'Reversals', 'From earlier periods', 'Commission', '1–6 A gift card'];
  const written = new Intl.NumberFormat('en', { minimumFractionDigits: 2 });
  const amounts = lines.map(({ amount }) =>
    written.format(dollars(amount) as Intl.StringNumericLiteral).replace('-', '−'),
  );
  const counts = lines.slice(0, 3).map(({ rows }) => `(${rows})`);
  const label = 'To be paid under earlier settlements';
  for (const text of [...words, ...amounts, ...counts, label])
    assert.ok(page?.text.includes(text), `${text} in ${page?.text}`);
});

test('the statement has a letterhead, the language of the merchant, and the currency of its sums', async (t) => {
  const scene = await openScene(t);
  const { ledger, shop } = scene;
  const { db } = ledger.started.service;
  const draft = await draftedDay(scene);
  await setLetterhead(ledger.operator, {
    sender: 'Gutscheine Beispiel GmbH',
    addressLines: ['Hauptstraße 1', '10115 Berlin'],
    vatNumber: 'DE123456789',
  });
  await ledger.sql(`update scrip.merchants set language = 'de' where id = ${shop.merchant.id}`);
  const { settlement } = await approve(ledger.operator, draft.id);
  const documents = await documentsOf(db, settlement);
  const [page] = await readSheet(documents?.pdf ?? Buffer.alloc(0));
  const title = `Abrechnung ${settlement.number}`;
  for (const text of [
    ...['Gutscheine Beispiel GmbH', 'Hauptstraße 1', '10115 Berlin', 'USt-IdNr. DE123456789'],
    ...[
      title,
      shop.merchant.name,
      'Einlösungen',
      'Zeilen, Produkt, in USD',
      '1–3 Voucher',
      '100,10 (2)',
      'Zahlbar',
      'USD 97,10',
    ],
    ...['keine Rechnung', 'Provision von 2,5 % auf USD 100,10'],
  ])
    assert.ok(page?.text.includes(text), `${text} in ${page?.text}`);
  assert.doesNotMatch(page?.text ?? '', /Settlement|Redemptions|Payable|PAYOUT/);
});

test('each step of a settlement is announced as the OpenAPI documents describe it', async (t) => {
  const scene = await openScene(t);
  const { ledger, shop } = scene;
  const { operator } = ledger;
  await ledger.sql(
    `
      insert into scrip.webhook_endpoints (merchant_id, url, secret, created_at)
      values (${shop.merchant.id}, 'https://example.com/', '\\x00', now())`,
  );
  const draft = await draftedDay(scene);
  await approve(operator, draft.id);
  const bank = { settlementId: draft.id, bankReference: 'B', valueDate: '2026-03-02' };
  await pay(operator, { ...bank, reference: 'p' });
  await returned(operator, { ...bank, reference: 'r' });
  const events = await ledger.sql<{ type: string; data: object }>(
    `select type, data from scrip.webhook_deliveries where type like 'settlement.%' order by event_id`,
  );
  assert.deepEqual(
    events.map(({ type }) => type),
    ['settlement.approved', 'settlement.paid', 'settlement.returned'],
  );
  for (const event of events) assertDescribed(event);
});

type Scene = Awaited<ReturnType<typeof openScene>>;
const PAYER = { name: 'Operator & Co <Ltd>', iban: 'GB29NWBK60161331926819', bic: null };
const OTHER = 'GB29NWBK60161331926819';

/** Makes a payout file of settlements of the shop. */
function fileOf(
  scene: Scene,
  ids: readonly string[],
  more: Partial<Parameters<typeof makePayoutFile>[1]> = {},
) {
  const accounts = accountsOf(scene, IBAN);
  return makePayoutFile(scene.ledger.operator, { ids, format: 'pain001', accounts, payer: PAYER, ...more });
}

const accountsOf = ({ shop }: Scene, iban: string) =>
  readAccounts(`merchantId,name,iban,bic\n${shop.merchant.id},Café Größe,${iban},COBADEFFXXX\n`);

test('a payout file fits its schema, and pays on a bank day in letters that banks take', async (t) => {
  const scene = await openScene(t);
  const draft = await draftedDay(scene);
  await approve(scene.ledger.operator, draft.id);
  // A Saturday, after the due day.
  await scene.ledger.at('2026-03-07T10:00:00Z');
  const { id, content } = await fileOf(scene, [draft.id]);
  const number = `${scene.shop.merchant.id}-2026-0001`;
  for (const part of [
    `<MsgId>SCRIP-20260307-${id}</MsgId>`,
    `<EndToEndId>${number}-${id}</EndToEndId>`,
    '<InstdAmt Ccy="USD">97.10</InstdAmt>',
    '<Nm>Operator + Co .Ltd.</Nm>',
    '<Nm>Cafe Grosse</Nm>',
    '<ReqdExctnDt><Dt>2026-03-09</Dt>',
    '<BtchBookg>false</BtchBookg><NbOfTxs>1</NbOfTxs><CtrlSum>97.10</CtrlSum>',
    '<ChrgBr>SHAR</ChrgBr>',
    `<DbtrAcct><Id><IBAN>${PAYER.iban}</IBAN></Id></DbtrAcct>`,
    '<DbtrAgt><FinInstnId><Othr><Id>NOTPROVIDED</Id></Othr></FinInstnId></DbtrAgt>',
    '<CdtrAgt><FinInstnId><BICFI>COBADEFFXXX</BICFI></FinInstnId></CdtrAgt>',
    `<CdtrAcct><Id><IBAN>${IBAN}</IBAN></Id></CdtrAcct>`,
  ])
    assert.ok(content.includes(part), `${part} in ${content}`);
  const check = schemaCheck('pain.001.001.09');
  assert.equal((await check(t, content)) ?? '', '');
  const broken = await check(t, content.replace('<PmtMtd>TRF</PmtMtd>', ''));
  if (broken !== undefined) assert.notEqual(broken, '');
});

test('a settlement is in one payout file, unless its payment came back or somebody says why', async (t) => {
  const scene = await openScene(t);
  const { ledger } = scene;
  const { operator } = ledger;
  const draft = await draftedDay(scene);
  await approve(operator, draft.id);
  // Of several at the same moment, one pays it.
  const files = await Promise.allSettled(Array.from({ length: 5 }, () => fileOf(scene, [draft.id])));
  const [first, ...others] = files.flatMap((file) => (file.status === 'fulfilled' ? [file.value] : []));
  assert.ok(first && others.length === 0);
  await assert.rejects(fileOf(scene, [draft.id]), {
    code: '58',
    message: /in payout file \d+: a second file/,
  });
  assert.deepEqual(await dueSettlements(ledger.started.service.db, '2026-12-31'), []);
  const again = await fileOf(scene, [draft.id], { againBecause: 'the bank has lost it' });
  const bank = { settlementId: draft.id, bankReference: 'B', valueDate: '2026-03-02' };
  await pay(operator, { ...bank, reference: 'p' });
  await returned(operator, { ...bank, reference: 'r' });
  assert.deepEqual(await dueSettlements(ledger.started.service.db, '2026-12-31'), [draft.id]);
  const third = await fileOf(scene, [draft.id]);
  const { items } = await payoutFiles.run({ service: ledger.started.service } as never, {});
  const listed = items as Record<string, unknown>[];
  const number = `${scene.shop.merchant.id}-2026-0001`;
  assert.deepEqual(
    listed.map((each) => [Number(each['id']), each['again'], each['settlements'], each['sha256']]),
    [third, again, first].map(({ id, content }) => [
      id,
      id === again.id ? 'the bank has lost it' : null,
      [number],
      createHash('sha256').update(content).digest('hex'),
    ]),
  );
  assert.equal(new Set([first, again, third].map(({ content }) => /<MsgId>.*?</.exec(content)?.[0])).size, 3);
  await proveSound(ledger.started.service);
});

test('a payout file pays only the account of the present terms, of which the end and a digest are kept', async (t) => {
  const scene = await openScene(t);
  const { ledger, shop } = scene;
  const { operator } = ledger;
  const draft = await draftedDay(scene);
  await approve(operator, draft.id);
  // It ends like the account of the terms.
  const alike = 'GB77BARC20031800003000';
  const wrong = { message: /whose terms name another account/ };
  for (const iban of [OTHER, alike])
    await assert.rejects(fileOf(scene, [draft.id], { accounts: accountsOf(scene, iban) }), wrong, iban);
  const stored = await ledger.sql<{ row: string }>('select t::text as row from scrip.settlement_terms t');
  assert.ok(stored.every(({ row }) => row.includes('3000') && !row.includes(IBAN)));
  // The merchant has another account now, perhaps because the old one returned a payment.
  await terms(operator, shop.merchant.id, { from: '2026-03-02', iban: OTHER });
  await assert.rejects(fileOf(scene, [draft.id]), wrong);
  const { content } = await fileOf(scene, [draft.id], { accounts: accountsOf(scene, OTHER), format: 'csv' });
  assert.match(content, new RegExp(`,Café Größe,${OTHER},COBADEFFXXX,97\\.10,USD,2026-03-04\\r\\n$`));
  await ledger.at('2026-03-03T10:00:00Z');
  await terms(operator, shop.merchant.id, { from: '2026-03-03', iban: undefined });
  const again = { againBecause: 'a test', accounts: accountsOf(scene, OTHER) };
  await assert.rejects(fileOf(scene, [draft.id], again), { message: /whose terms name no account/ });
});

test('the accounts of payees are refused with their line', () => {
  for (const [row, reason] of [
    ['5,Shop,DE00370400440532013000,', /line 2.*iban/],
    [`5,Магазин,${IBAN},`, /line 2.*Latin/],
    [`5,Shop,${IBAN},COBA`, /line 2.*bic/],
  ] as const)
    assert.throws(() => readAccounts(`merchantId,name,iban,bic\n${row}\n`), reason);
  assert.throws(() => readAccounts(`merchantId,name,iban,iban\n5,Shop,${IBAN},${OTHER}\n`), /line 1.*twice/);
  const saved = Buffer.from(`merchantId,name,iban,bic\n5,Shop,${IBAN},\n`, 'utf16le');
  for (const bytes of [saved, Buffer.concat([Buffer.from('fffe', 'hex'), saved])])
    assert.throws(() => readAccounts(bytes.toString()), /save it in UTF-8/);
});

test('banks pay on weekdays, and in euro not on the closing days of TARGET', () => {
  assert.deepEqual(
    [
      ['2026-03-06', 'USD'],
      ['2026-03-07', 'USD'],
      ['2026-04-03', 'USD'],
      ['2026-04-03', 'EUR'],
      ['2026-05-01', 'EUR'],
      ['2027-03-26', 'EUR'],
      ['2026-12-25', 'EUR'],
      ['2049-04-16', 'EUR'],
    ].map(([day = '', currency = '']) => bankDay(day, currency)),
    [
      ...['2026-03-06', '2026-03-09', '2026-04-03', '2026-04-07', '2026-05-04', '2027-03-30', '2026-12-28'],
      '2049-04-20',
    ],
  );
});
