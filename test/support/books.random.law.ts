import { setBankAccount } from '../../src/bank/accounts.ts';
import { saveMapping } from '../../src/bank/csv.ts';
import { importBank } from '../../src/bank/import.ts';
import { matchByHand } from '../../src/bank/match.ts';
import { setBreakageRate, setDormancyRule, setVatTreatment } from '../../src/books/rules.ts';
import { decimalsOf, toNumber, toText } from '../../src/money.ts';
import type { Shown, Treatment } from './books.law.ts';
import type { Entry } from './books.model.ts';
import type { World } from './books.random.ts';

/** The rules, rates, treatments and bank entries for reports of random days. */

/** The rates of estimated breakage, in millionths. */
const RATES = [
  { product: 'USD-LONG', from: '2026-03-26', rate: 120_000n },
  { product: 'USD-LONG', from: '2026-03-30', rate: 250_000n },
  { product: 'USD-SHORT', from: '2026-03-27', rate: 333_333n },
  { product: 'JPY-SHORT', from: '2026-03-26', rate: 500_000n },
] as const;

/** The newest rate that has begun on a day. */
export const rateOn = (product: string, day: string): bigint | undefined =>
  RATES.findLast((each) => each.product === product && each.from <= day)?.rate;

export const RULES = [
  { name: 'by issue', basis: 'issue' },
  { name: 'by use', basis: 'last-use' },
] as const;

const TREATMENTS: readonly (Treatment & { readonly product: string; readonly from: string })[] = [
  { product: 'USD-LONG', from: '2026-03-01', treatment: 'single', country: 'US', rate: 82_500n },
  { product: 'USD-LONG', from: '2026-03-30', treatment: 'single', country: 'US', rate: 90_000n },
  { product: 'USD-SHORT', from: '2026-03-28', treatment: 'multi', country: 'DE', rate: 70_000n },
  { product: 'JPY-SHORT', from: '2026-03-01', treatment: 'outside', country: 'JP', rate: 0n },
];

/** The newest treatment that has begun on a day. */
export const treatmentOf = (product: string, day: string): Treatment | undefined =>
  TREATMENTS.findLast((each) => each.product === product && each.from <= day);

export async function setLaws({ operator }: World): Promise<void> {
  const percentOf = (ppm: bigint) => Number(ppm) / 10_000;
  for (const rule of RULES) await setDormancyRule(operator, { ...rule, from: '2026-03-01', months: 1 });
  for (const { rate, ...of } of RATES)
    await setBreakageRate(operator, { ...of, percent: percentOf(rate), reason: 'cohorts' });
  for (const { rate, ...of } of TREATMENTS) await setVatTreatment(operator, { ...of, rate: percentOf(rate) });
}

/** The operator's own money at the bank. */
export const OWN = { EUR: 0n, JPY: 7_000n, USD: 123_456n } as const;
const DAY_MS = 86_400_000;

/**
 * Imports entries of a bank: most movements of its money, some days later, and some unknown ones. An entry
 * of a movement is matched with it.
 */
export async function showBank({ operator, random, ledger }: World, all: readonly Entry[]): Promise<Shown[]> {
  const shown: Shown[] = [];
  for (const { id, at, kind, currency, amount, debit, credit } of all) {
    if (kind === 'IMPORT' || ![debit, credit].includes('FUNDING') || random() < 0.3) continue;
    const day = new Date(at.getTime() + Math.floor(random() * 3) * DAY_MS).toISOString().slice(0, 10);
    const minor = debit === 'FUNDING' ? amount : -amount;
    shown.push({ currency, day, minor, movement: id });
    if (random() < 0.2) shown.push({ currency, day, minor: 1n + minor / 7n, movement: null });
  }
  const mapping = { date: 'date', dateFormat: 'YYYY-MM-DD', amount: 'amount', decimal: '.' } as const;
  const file = { entryReference: null, delimiter: ',', encoding: 'utf-8' } as const;
  await saveMapping(operator, 'plain', { ...mapping, texts: ['text'], ...file });
  for (const [currency, ownMinor] of Object.entries(OWN)) {
    const decimals = decimalsOf(currency) ?? 2;
    await setBankAccount(operator, {
      name: currency,
      currency,
      own: toNumber({ minor: ownMinor, decimals }),
    });
    const own = shown.filter((each) => each.currency === currency);
    const lines = own.map(({ day, minor }, line) => `${day},entry ${line},${toText({ minor, decimals })}`);
    const bytes = Buffer.from(`date,text,amount\n${lines.join('\n')}\n`);
    await importBank(operator, { account: currency, bytes, format: 'csv', mapping: 'plain' }, false);
    // A file whose newest entry comes first is read from its end.
    const entries = await ledger.sql<{ id: string; description: string }>(
      `select id::text, description from scrip.bank_entries where account = '${currency}'`,
    );
    const ids = new Map(entries.map((each) => [each.description, each.id]));
    for (const [line, { movement }] of own.entries())
      if (movement)
        await matchByHand(operator, { entries: [ids.get(`entry ${line}`) ?? ''], movements: [movement] });
  }
  return shown;
}
