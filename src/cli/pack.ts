import { createHash } from 'node:crypto';
import { lstat, mkdir, rename } from 'node:fs/promises';
import { join } from 'node:path';
import type { Command } from 'commander';
import { accounts } from '../bank/accounts.ts';
import { checkInterval, days, type ListedDay, listDays } from '../books/days.ts';
import { reportCsvFile } from '../books/reports/reports.ts';
import type { Service } from '../context.ts';
import { merchants } from '../merchants/merchants.ts';
import { users } from '../people/users.ts';
import { withDraft, writePrivate } from '../private-file.ts';
import { addDays, isoDay } from '../time.ts';
import { withService } from './open.ts';
import { fail, printJson, say } from './output.ts';
import { parseDay } from './parse.ts';
import { itemsOf, performWith, piecesOf } from './perform.ts';

/** The folder that a supervisor asks for, or the person who has to wind the business up. */

const MONTHLY = ['R1', 'R2', 'R3', 'R13', 'R14'] as const;
/** The months without `--from`. */
const MONTHS = 12;

const README = `What is in this folder
======================

safeguarding.csv    for each closed day: what is owed to others, what the bank holds for them, and the
                    difference (R14), with who imported the bank's statement and when
owed.csv            what each merchant is owed at the end (R1 by merchant)
YYYY-MM/            the reports of each month: trial balance (R1), liability (R2), outstanding by day (R3),
                    the bank compared with the books (R13), safeguarding (R14)
days.json           the closed days with their hashes, which \`scrip books verify\` computes again
merchants.json      the merchants that are owed
bank-accounts.json  the accounts that hold the money
people.json         the operator's people, with their roles
SHA256SUMS          the digests of these files: \`sha256sum --check SHA256SUMS\`

Days that are not closed are left out. The vouchers themselves are in the database and its backups.
`;

export function addPack(books: Command): void {
  books
    .command('pack <dir>')
    .description('write what a supervisor of safeguarded money asks for into a new folder')
    .option('--from <day>', 'the first day (default: a year back)', (text) => parseDay(text, '--from'))
    .option('--to <day>', 'the day after the last one (default: all closed days)', (text) =>
      parseDay(text, '--to'),
    )
    .option('--json', 'print JSON')
    .action(pack);
}

type Options = { readonly from?: string; readonly to?: string; readonly json?: boolean };
type Interval = { readonly from: string; readonly to: string };

async function pack(dir: string, { json, ...wanted }: Options): Promise<void> {
  if (await lstat(dir).catch(() => undefined)) fail(`${dir} is there already: name a new folder`);
  await withService(async (service) => {
    const interval = toInterval(await listDays(service, {}), wanted);
    await withDraft(dir, async (draft) => {
      await mkdir(draft, { mode: 0o700 });
      const files = await writePack(service, interval, draft);
      await rename(draft, dir);
      if (json) printJson({ folder: dir, ...interval, files });
      else say(`${files} files of ${interval.from} to ${interval.to} (exclusive) in ${dir}`);
    });
  });
}

/** Returns the closed days of the wanted interval. @throws CommandError if there are none */
function toInterval(all: readonly ListedDay[], { from, to }: Partial<Interval>): Interval {
  const closed = all.filter(({ state }) => state === 'closed').map(({ day }) => day);
  const last = closed.filter((day) => to === undefined || day < to).at(-1);
  const since = from ?? (last && monthsBefore(last, MONTHS));
  const first = closed.find((day) => since !== undefined && day >= since);
  if (first === undefined || last === undefined || first > last)
    fail('no day of this interval is closed: `scrip books days` lists them, `scrip books close` closes them');
  return checkInterval({ from: first, to: addDays(last, 1) }) as Interval;
}

/** Returns the first day of the month so many months before that of a day. */
function monthsBefore(day: string, count: number): string {
  const [year = 0, month = 0] = day.split('-').map(Number);
  return isoDay(Date.UTC(year, month - 1 - count, 1));
}

/** Returns the parts of an interval by calendar month. */
function monthsOf({ from, to }: Interval): Interval[] {
  const months: Interval[] = [];
  for (let start = from; start < to; ) {
    const next = monthsBefore(start, -1);
    const end = next < to ? next : to;
    months.push({ from: start, to: end });
    start = end;
  }
  return months;
}

/** Writes all files. @returns how many there are */
export async function writePack(service: Service, interval: Interval, folder: string): Promise<number> {
  const sums: string[] = [];
  const write = async (name: string, pieces: AsyncIterable<string | Buffer> | string[]) => {
    const digest = createHash('sha256');
    await writePrivate(join(folder, name), hashing(pieces, digest));
    sums.push(`${digest.digest('hex')}  ${name}\n`);
  };
  const report = async (name: string, number: string, of: Interval, breakdown?: 'merchant') => {
    const input = { report: number, ...of, ...(breakdown && { breakdown }) };
    await write(name, piecesOf((await performWith(service, reportCsvFile, input)).content));
  };
  const list = async (name: string, items: readonly unknown[]) =>
    write(name, [`${JSON.stringify(items, undefined, 2)}\n`]);

  await write('README.txt', [README]);
  await report('safeguarding.csv', 'R14', interval);
  await report('owed.csv', 'R1', interval, 'merchant');
  for (const month of monthsOf(interval)) {
    const name = month.from.slice(0, 7);
    await mkdir(join(folder, name), { mode: 0o700 });
    for (const number of MONTHLY) await report(`${name}/${number}.csv`, number, month);
  }
  await list('days.json', await Array.fromAsync(itemsOf(service, days, interval)));
  await list('merchants.json', await Array.fromAsync(itemsOf(service, merchants.list, {})));
  await list('bank-accounts.json', await Array.fromAsync(itemsOf(service, accounts.list, {})));
  const people = await Array.fromAsync(itemsOf(service, users.list, {}));
  await list(
    'people.json',
    people.filter(({ merchantId }) => merchantId === null),
  );
  const files = sums.length;
  await writePrivate(join(folder, 'SHA256SUMS'), sums);
  return files + 1;
}

async function* hashing(
  pieces: AsyncIterable<string | Buffer> | string[],
  digest: ReturnType<typeof createHash>,
): AsyncGenerator<string | Buffer> {
  for await (const piece of pieces) {
    digest.update(piece);
    yield piece;
  }
}
