import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { audit } from '../audit/audit.ts';
import type { Operator, Service } from '../context.ts';
import { sql } from '../db/sql.ts';
import { checkReference } from '../ledger/claims.ts';
import { ensureAccounts } from '../ledger/journal.ts';
import { listFloats } from '../merchants/merchants.ts';
import { type Sum, toText } from '../money.ts';
import { listProducts, type Product } from '../products/products.ts';
import { Refusal } from '../refusal.ts';
import {
  findTaken,
  type ImportRow,
  type ImportRules,
  type Known,
  readChunks,
  spansOf,
} from './import.check.ts';
import { newDigest, type RowError, UnreadableFile } from './import.read.ts';
import { type ImportToWrite, writeChunk } from './import.write.ts';

type ImportTableRow = {
  id: number;
  digest: Buffer;
  vouchers: number;
  chunks: number;
  started_at: Date;
  finished_at: Date | null;
};

export type ImportWanted = {
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
  options: {
    dryRun: boolean;
    onProgress?: (written: number, vouchers: number) => void;
    stopping?: () => boolean;
  },
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
  const now = begun?.started_at ?? service.clock();
  const known = { products, now, spanOf: spansOf(service.db) };
  const checked = await check(service, wanted, known, done);
  const { chunkDigests, vouchers, totals, errors, errorCount } = checked;
  const report = { reference, vouchers, resumedAt, totals, errors, errorCount };
  if (begun?.finished_at) return { ...report, state: 'replayed' };
  if (errorCount > 0) return { ...report, state: 'refused' };
  if (options.dryRun) return { ...report, state: 'checked' };
  if (!checked.digest.equals(digest)) throw changed();
  const begin = begun ?? (await start(operator, wanted, { reference, checked }));
  const writing = { id: begin.id, merchantId: wanted.merchantId, paidFrom: wanted.paidFrom };
  await write(operator, wanted, { ...writing, ...known, done, chunkDigests, vouchers }, options);
  return { ...report, state: 'imported' };
}

async function digestOf({ file, rules, paidFrom }: ImportWanted): Promise<Buffer> {
  const digest = newDigest({ ...rules, paidFrom });
  for await (const part of createReadStream(file)) digest.update(part as Buffer);
  return digest.digest();
}

function changed(): Error {
  return new UnreadableFile(1, 'the file has changed while it was read: run the command again');
}

async function find({ db }: Service, merchantId: number, reference: string, digest: Buffer) {
  const [row] = await db.query<ImportTableRow>(sql`
select id, digest, vouchers, chunks, started_at, finished_at from voucher_imports
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
  const digest = newDigest({ ...wanted.rules, paidFrom: wanted.paidFrom });
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
      for (const { line } of await findTaken(service.db, service, chunk))
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
): Promise<ImportTableRow> {
  const { service, actor } = operator;
  const { digest, vouchers, chunkDigests, totals } = checked;
  for (const currency of new Set(totals.map((each) => each.currency)))
    await ensureAccounts(service.db, merchantId, currency);
  return service.db.transaction(async (tx) => {
    const [row] = await tx.query<ImportTableRow>(sql`
insert into voucher_imports (merchant_id, reference, digest, paid_from, vouchers, chunks, imported_by,
  started_at)
values (${merchantId}, ${reference}, ${digest}, ${paidFrom}, ${vouchers}, ${chunkDigests.length},
  ${actor.name}, ${service.clock()})
on conflict do nothing
returning id, digest, vouchers, chunks, started_at, finished_at`);
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
    return row;
  });
}

/** Writes all chunks that are still missing. */
async function write(
  operator: Operator,
  { file, rules, paidFrom }: ImportWanted,
  to: ImportToWrite &
    Known & {
      readonly done: ReadonlyMap<number, number>;
      readonly chunkDigests: readonly string[];
      readonly vouchers: number;
    },
  {
    onProgress,
    stopping,
  }: { onProgress?: (written: number, vouchers: number) => void; stopping?: () => boolean },
): Promise<void> {
  const digest = newDigest({ ...rules, paidFrom });
  let number = 0;
  let written = 0;
  for await (const chunk of readChunks(file, rules, to, { digest, refuse: () => {} })) {
    if (stopping?.()) return;
    if (chunkDigest(chunk) !== to.chunkDigests[number]) throw changed();
    if (!to.done.has(number)) await writeChunk(operator, to, number, chunk);
    number++;
    written += chunk.length;
    onProgress?.(written, to.vouchers);
  }
}
