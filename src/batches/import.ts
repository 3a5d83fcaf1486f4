import { createHash, type Hash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { audit } from '../audit/audit.ts';
import type { Operator, Service } from '../context.ts';
import { retrying } from '../db/errors.ts';
import type { Queries } from '../db/pool.ts';
import { plainArray, sql, textArray } from '../db/sql.ts';
import type { KeyRing } from '../keyring/ring.ts';
import { holdKeyRing } from '../keyring/store.ts';
import { checkReference, claimIn } from '../ledger/claims.ts';
import { newId } from '../ledger/id.ts';
import { accountOf, ensureAccounts } from '../ledger/journal.ts';
import { listFloats } from '../merchants/merchants.ts';
import { type Sum, toText } from '../money.ts';
import { listProducts, type Product } from '../products/products.ts';
import { Refusal } from '../refusal.ts';
import { findTaken, takeNumbers } from './fill.ts';
import {
  type ImportRow,
  type ImportRules,
  type Known,
  type RowError,
  readChunks,
  spansOf,
  UnreadableFile,
} from './import.rows.ts';
import { makeRows } from './rows.ts';

type ImportWanted = {
  /** The issuer of the vouchers. */
  readonly merchantId: number;
  readonly file: string;
  /**
   * The operator's reference. By default it is derived from the file, so that a file is imported only once.
   */
  readonly reference?: string | undefined;
  readonly rules: ImportRules;
  /** The source of the money: `funding`, if the other system hands it over, or the issuer's float. */
  readonly paidFrom: 'funding' | 'float';
};

/** An import that has begun. */
type Begun = { readonly id: number; readonly startedAt: Date; readonly finishedAt: Date | null };

type ImportTotal = { product: string; currency: string; vouchers: number; amount: string };

export type ImportReport = {
  readonly reference: string;
  /** `refused`: nothing was imported. `replayed`: everything had been imported before. */
  readonly state: 'checked' | 'refused' | 'imported' | 'replayed';
  readonly vouchers: number;
  /** The number of vouchers that an earlier, interrupted run had imported. */
  readonly resumedAt: number;
  readonly totals: readonly ImportTotal[];
  /** The faults in the order of the file: the first thousand of `errorCount`. */
  readonly errors: readonly RowError[];
  readonly errorCount: number;
};

/** The most errors in a report: nobody reads more. */
const ERRORS_MAX = 1_000;
/** The most vouchers in a file: the check remembers about 60 bytes of each row. */
const VOUCHERS_MAX = 5_000_000;
const REFERENCE_DIGITS = 24;

type Watching = {
  readonly onProgress?: (written: number, vouchers: number) => void;
  readonly stopping?: () => boolean;
};

type Checked = {
  readonly digest: Buffer;
  readonly chunkDigests: readonly string[];
  readonly vouchers: number;
  readonly totals: readonly ImportTotal[];
  readonly errors: readonly RowError[];
  readonly errorCount: number;
};

/**
 * Imports the vouchers of another system from a file. The whole file is checked before the first voucher is
 * written; any fault refuses it. Then it is written chunk by chunk, each in a transaction. The same file
 * again continues where an earlier run ended.
 * @param options.dryRun only checks
 * @param options.stopping whether to end after the current chunk
 * @returns the faults, or what was imported
 * @throws Refusal `18`, `94`; UnreadableFile
 */
export async function importVouchers(
  operator: Operator,
  wanted: ImportWanted,
  options: { readonly dryRun: boolean } & Watching,
): Promise<ImportReport> {
  const { service } = operator;
  const digest = await digestOf(wanted);
  const reference = wanted.reference ?? `import-${digest.toString('hex').slice(0, REFERENCE_DIGITS)}`;
  checkReference(reference);
  const begun = await find(service, wanted.merchantId, reference, digest);
  const products = new Map((await listProducts(service.db)).map((each) => [each.code, each]));
  const done = begun ? await doneChunks(service, begun.id) : new Map<number, number>();
  const resumedAt = [...done.values()].reduce((sum, each) => sum + each, 0);
  // A voucher that was not expired when the import began is accepted when the import continues.
  const now = begun?.startedAt ?? service.clock();
  const known = { products, now, spanOf: spansOf(service.db) };
  const checked = await check(service, wanted, known, done);
  const { chunkDigests, vouchers, totals, errors, errorCount } = checked;
  const report = { reference, vouchers, resumedAt, totals, errors, errorCount };
  if (begun?.finishedAt) return { ...report, state: 'replayed' };
  if (errorCount > 0) return { ...report, state: 'refused' };
  if (options.dryRun) return { ...report, state: 'checked' };
  if (!checked.digest.equals(digest)) throw changed();
  const id = begun?.id ?? (await start(operator, wanted, { reference, checked }));
  await write(operator, { ...wanted, id }, known, { done, chunkDigests, vouchers }, options);
  return { ...report, state: 'imported' };
}

/** Returns a digest that begins with the rules of the import: with other rules it is another import. */
function newDigest({ rules, paidFrom }: ImportWanted): Hash {
  return createHash('sha256').update(`${JSON.stringify({ ...rules, paidFrom })}\n`);
}

async function digestOf(wanted: ImportWanted): Promise<Buffer> {
  const digest = newDigest(wanted);
  for await (const part of createReadStream(wanted.file)) digest.update(part as Buffer);
  return digest.digest();
}

function changed(): Error {
  return new UnreadableFile(1, 'the file has changed while it was read: run the command again');
}

async function find({ db }: Service, merchantId: number, reference: string, digest: Buffer) {
  const [row] = await db.query<Begun & { readonly digest: Buffer }>(sql`
select id, digest, started_at as "startedAt", finished_at as "finishedAt" from voucher_imports
where merchant_id = ${merchantId} and reference = ${reference}`);
  if (row && !row.digest.equals(digest))
    throw new Refusal('94', { message: 'the reference was used for another file, or for other options' });
  return row;
}

async function doneChunks({ db }: Service, importId: number): Promise<Map<number, number>> {
  const rows = await db.query<{ chunk: number; vouchers: number }>(
    sql`select chunk, vouchers from voucher_import_chunks where import_id = ${importId}`,
  );
  return new Map(rows.map(({ chunk, vouchers }) => [chunk, vouchers]));
}

/** Reads the whole file. Returns its faults and a summary of its contents. */
async function check(
  service: Service,
  wanted: ImportWanted,
  known: Known,
  done: ReadonlyMap<number, number>,
): Promise<Checked> {
  const errors: RowError[] = [];
  let errorCount = 0;
  const refuse = (error: RowError) => {
    if (++errorCount <= ERRORS_MAX) errors.push(error);
  };
  const digest = newDigest(wanted);
  const lines = new Map<number, number>();
  const sums = new Map<string, { product: Product; vouchers: number; minor: bigint }>();
  const due = new Map<string, bigint>();
  const chunkDigests: string[] = [];
  const onCode = (code: string, line: number) => {
    const first = lines.get(Number(code));
    if (first !== undefined) refuse({ line, field: 'code', message: `is also in line ${first}` });
    else if (lines.size === VOUCHERS_MAX)
      throw new UnreadableFile(line, `a file holds at most ${VOUCHERS_MAX} vouchers: split it`);
    else lines.set(Number(code), line);
  };
  const noted = { digest, refuse, onCode };
  for await (const chunk of readChunks(wanted.file, wanted.rules, known, noted)) {
    for (const row of chunk) addTo(sums, row);
    if (!done.has(chunkDigests.length)) {
      for (const { line } of await findTaken(service.db, ownersOf(service.keys, chunk)))
        refuse({ line, field: 'code', message: 'is the code of a voucher that exists already' });
      for (const { product, balanceMinor } of chunk)
        due.set(product.currency, (due.get(product.currency) ?? 0n) + balanceMinor);
    }
    chunkDigests.push(chunkDigest(chunk));
  }
  if (wanted.paidFrom === 'float') await checkFloats(service, wanted.merchantId, due, refuse);
  if (lines.size === 0 && errorCount === 0)
    refuse({ line: 1, field: 'row', message: 'the file contains no voucher' });
  errors.sort((one, other) => one.line - other.line);
  const totals = [...sums.values()].map(({ product, vouchers, minor }) => {
    const { code, currency, decimals } = product;
    return { product: code, currency, vouchers, amount: toText({ minor, decimals }) };
  });
  const vouchers = totals.reduce((sum, each) => sum + each.vouchers, 0);
  return { digest: digest.digest(), chunkDigests, vouchers, totals, errors, errorCount };
}

function addTo(
  sums: Map<string, { product: Product; vouchers: number; minor: bigint }>,
  row: ImportRow,
): void {
  const { product, balanceMinor } = row;
  const sum = sums.get(product.code) ?? { product, vouchers: 0, minor: 0n };
  sum.vouchers++;
  sum.minor += balanceMinor;
  sums.set(product.code, sum);
}

async function checkFloats(
  { db }: Service,
  merchantId: number,
  due: ReadonlyMap<string, bigint>,
  refuse: (error: RowError) => void,
): Promise<void> {
  const floats = await listFloats(db, merchantId);
  for (const [currency, minor] of due) {
    const balance = floats.find((each) => each.currency === currency)?.balance ?? 0n;
    if (balance < minor)
      refuse({
        line: 0,
        field: 'balance',
        message: `all together are more than the issuer's float in ${currency} holds`,
      });
  }
}

function chunkDigest(chunk: readonly ImportRow[]): string {
  const digest = createHash('sha256');
  for (const { line: _, balanceMinor, product, ...row } of chunk)
    digest.update(JSON.stringify([String(balanceMinor), product.id, row]));
  return digest.digest('hex');
}

/** Records the start of the import, also in the audit. */
async function start(
  operator: Operator,
  { merchantId, paidFrom }: ImportWanted,
  { reference, checked }: { reference: string; checked: Checked },
): Promise<number> {
  const { service, actor } = operator;
  const { digest, vouchers, chunkDigests, totals } = checked;
  for (const currency of new Set(totals.map((each) => each.currency)))
    await ensureAccounts(service.db, merchantId, currency);
  return service.db.transaction(async (tx) => {
    const [row] = await tx.query<{ id: number }>(sql`
insert into voucher_imports (merchant_id, reference, digest, paid_from, vouchers, chunks, imported_by,
  started_at)
values (${merchantId}, ${reference}, ${digest}, ${paidFrom}, ${vouchers}, ${chunkDigests.length},
  ${actor.name}, ${service.clock()})
on conflict do nothing
returning id`);
    if (!row)
      throw new Refusal('94', {
        message: 'another process has just begun this import: run the command again',
      });
    const sums = totals.map(({ currency, amount, ...each }) => ({
      ...each,
      amount: `${currency} ${amount}` as Sum,
    }));
    const after = { reference, paidFrom, vouchers, totals: sums, digest: digest.toString('hex') };
    await audit(tx, operator, { action: 'voucher.import', subject: `merchant ${merchantId}`, after });
    return row.id;
  });
}

/** An import that is written. */
type ToWrite = ImportWanted & { readonly id: number };

/** Writes all chunks that are still missing. */
async function write(
  operator: Operator,
  to: ToWrite,
  known: Known,
  checked: Pick<Checked, 'chunkDigests' | 'vouchers'> & { readonly done: ReadonlyMap<number, number> },
  { onProgress, stopping }: Watching,
): Promise<void> {
  let number = 0;
  let written = 0;
  for await (const chunk of readChunks(to.file, to.rules, known)) {
    if (stopping?.()) return;
    if (chunkDigest(chunk) !== checked.chunkDigests[number]) throw changed();
    if (!checked.done.has(number)) await writeChunk(operator, to, number, chunk);
    number++;
    written += chunk.length;
    onProgress?.(written, checked.vouchers);
  }
}

/** Returns rows by the keys of their codes, under every key in use. */
function ownersOf(keys: KeyRing, rows: readonly ImportRow[]): Map<string, ImportRow> {
  return new Map(
    rows.flatMap((row) =>
      [keys.codeKey(row.code), ...keys.olderCodeKeys(row.code)].map((key) => [key, row] as const),
    ),
  );
}

/** The vouchers of one product in a chunk: their batch, and the account that pays for them. */
type Group = {
  readonly rows: readonly ImportRow[];
  readonly batchId: number;
  readonly payer: bigint;
};

/**
 * Writes one chunk in one transaction: a batch for each product, its vouchers, a movement for each voucher,
 * and the record of the chunk. The last chunk ends the import.
 */
function writeChunk(
  operator: Operator,
  to: ToWrite,
  chunk: number,
  rows: readonly ImportRow[],
): Promise<void> {
  const { service } = operator;
  return retrying(() =>
    service.db.transaction(async (tx) => {
      await holdKeyRing(tx, service.keys);
      // There is a row if the chunk was not imported before. If another process is importing it, it waits
      // for that process.
      const [isNew] = await tx.query(sql`
insert into voucher_import_chunks (import_id, chunk, vouchers) values (${to.id}, ${chunk}, ${rows.length})
on conflict do nothing returning chunk`);
      if (!isNew) return;
      // An order may have drawn one of these codes since the check.
      const [taken] = await findTaken(tx, ownersOf(service.keys, rows));
      if (taken)
        throw new UnreadableFile(
          taken.line,
          'the code is that of a voucher that has been made since the check',
        );
      const now = service.clock();
      const groups: Group[] = [];
      for (const own of Map.groupBy(rows, ({ product }) => product.id).values())
        groups.push(await prepareGroup(service, tx, to, own, now));
      for (const group of groups) await writeGroup(service, tx, to.id, group, now);
      // Ends an import if all its chunks are imported, and then returns a row.
      const [finished] = await tx.query(sql`
update voucher_imports i set finished_at = ${now}
where i.id = ${to.id} and i.finished_at is null
  and i.chunks = (select count(*) from voucher_import_chunks c where c.import_id = i.id)
returning i.id`);
      if (finished)
        await audit(tx, operator, {
          action: 'voucher.imported',
          subject: `merchant ${to.merchantId}`,
          after: { import: to.id },
        });
    }),
  );
}

async function prepareGroup(
  service: Service,
  tx: Queries,
  { merchantId, paidFrom }: ToWrite,
  rows: readonly ImportRow[],
  now: Date,
): Promise<Group> {
  const [{ product }] = rows as [ImportRow];
  const { currency, id: productId } = product;
  const id = newId(now);
  const reference = `import-${id}`;
  await claimIn(tx, service, { merchantId, operation: 'generate', reference, id, fingerprint: 'import' });
  // The sweep visits a batch when it expires. From then on, vouchers that expire later are swept one by one.
  const expiresAt = new Date(Math.min(...rows.map((row) => row.expiresAt.getTime())));
  // The batch is complete from the start, and has no value, since each voucher has its own balance.
  const [batch] = await tx.query<{ id: number }>(sql`
insert into batches (transaction_id, merchant_id, reference, product_id, quantity, produced, expires_at,
  currency, decimals, activation, scope, expiry_policy, status, accepted_at, progressed_at, ended_at)
select ${id}, ${merchantId}, ${reference}, p.id, ${rows.length}, ${rows.length}, ${expiresAt},
  p.currency, p.decimals, 'immediate', p.scope, p.expiry_policy, 'COMPLETED', ${now}, now(), ${now}
from products p where p.id = ${productId}
returning id`);
  const isFloat = paidFrom === 'float';
  const payer = await accountOf(tx, isFloat ? merchantId : 0, currency, isFloat ? 'FLOAT' : 'FUNDING');
  if (!batch || payer === undefined)
    throw new Error('the batch of an import, or the account that pays for it, is missing');
  if (isFloat) {
    const amountMinor = rows.reduce((sum, row) => sum + row.balanceMinor, 0n);
    // Takes an amount from a float for a hold. `done` is false if the float is too low.
    const [debited] = await tx.query<{ done: boolean }>(
      sql`select debit_float(${payer}, ${amountMinor}, ${newId(now)}, ${now}) as done`,
    );
    if (!debited?.done) throw new Refusal('50');
  }
  return { rows, batchId: batch.id, payer };
}

/**
 * Writes vouchers and the movements that pay for them (sql/016-imports.sql), sealed under the key that the
 * transaction holds.
 */
async function writeGroup(
  { keys, buckets }: Service,
  tx: Queries,
  importId: number,
  { rows, batchId, payer }: Group,
  now: Date,
): Promise<void> {
  const made = makeRows(keys, {
    numbers: await takeNumbers(tx, rows.length),
    buckets: buckets.all,
    now,
    codes: rows.map(({ code }) => code),
    pins: rows.map(({ pin }) => pin),
  });
  const times = (of: (row: ImportRow) => Date | null) =>
    plainArray(rows.map((row) => of(row)?.toISOString() ?? null));
  await tx.query(sql`
select import_vouchers(${importId}, ${newId(now)}, ${batchId}, ${payer}, ${made.buckets}::int[],
  ${made.serials}::bigint[], ${made.codeKeys}::uuid[], ${made.pinKeys}::uuid[], ${made.sealed}::bytea[],
  ${plainArray(rows.map(({ balanceMinor }) => balanceMinor))}::bigint[],
  ${times(({ expiresAt }) => expiresAt)}::timestamptz[], ${made.entryIds}::uuid[],
  ${textArray(rows.map(({ reference }) => reference))}::text[],
  ${times(({ issuedAt }) => issuedAt)}::timestamptz[],
  ${times(({ lastUsedAt }) => lastUsedAt)}::timestamptz[], ${now})`);
}
