import { Broken, Untried } from './broken.ts';
import { type Shared, TestMerchant } from './merchant.ts';
import { type Access, Limited, type Seen, type Variant } from './probe.ts';
import type { Rule } from './rule.ts';
import { BATCHES } from './rules.batches.ts';
import { GENERAL } from './rules.general.ts';
import { LOOKUPS } from './rules.lookups.ts';
import { REFERENCES } from './rules.references.ts';
import { TRANSPORT } from './rules.transport.ts';
import { UPDATES } from './rules.updates.ts';
import { VOUCHERS } from './rules.vouchers.ts';

/** In the order in which they run. */
export const RULES: readonly Rule[] = [
  ...TRANSPORT,
  ...BATCHES,
  ...VOUCHERS,
  ...REFERENCES,
  ...LOOKUPS,
  ...UPDATES,
  ...GENERAL,
];

export type Result = {
  readonly rule: string;
  readonly title: string;
  readonly variant: Variant | 'both';
} & (
  | { readonly result: 'passed' }
  | { readonly result: 'failed'; readonly expected: string; readonly seen: string }
  | { readonly result: 'skipped'; readonly why: string }
);

export type Report = {
  readonly baseUrl: string;
  readonly startedAt: string;
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  readonly results: readonly Result[];
};

export type Plan = Access & {
  readonly variants: readonly Variant[];
  /** The product that variant A orders. */
  readonly product: string;
  /** The ids of the rules to run; all rules if it is empty. */
  readonly only: readonly string[];
  /** Called before each rule. */
  readonly onRule?: (done: number, total: number) => void;
};

/** Nothing could be checked, since the server or the test merchant lacks something. */
export class Unready extends Error {
  override readonly name = 'Unready';
}

type Step = { readonly rule: Rule; readonly merchant: TestMerchant; readonly variant: Variant | 'both' };

/**
 * Runs the rules against a server. The report holds no code, PIN or secret.
 * @throws Unready
 */
export async function runConformance(plan: Plan): Promise<Report> {
  const startedAt = new Date().toISOString();
  const shared: Shared = {
    run: crypto.randomUUID().slice(0, 8),
    product: plan.product,
    confidential: new Set(),
    codes: new Set(),
    count: 0,
  };
  const merchants = plan.variants.map((variant) => new TestMerchant(variant, plan, shared));
  const [first, second] = merchants;
  if (first && second) {
    first.other = second;
    second.other = first;
  }
  const permitsUpdates = await prepare(merchants);
  const steps = planSteps(merchants, plan.only);
  const secrets = [plan.secret, ...merchants.map(({ probe }) => probe.authorization.slice('Basic '.length))];
  const results: Result[] = [];
  let stopped: string | undefined;
  for (const [done, step] of steps.entries()) {
    plan.onRule?.(done, steps.length);
    const why = stopped ?? whyNot(step, permitsUpdates);
    const outcome = why === undefined ? await tryRule(step) : ({ result: 'skipped', why } as const);
    if (outcome instanceof Limited) stopped = outcome.message;
    const found =
      outcome instanceof Limited ? ({ result: 'skipped', why: outcome.message } as const) : outcome;
    const redact = redactor([...secrets, ...shared.confidential]);
    const clean = Object.fromEntries(
      Object.entries(found).map(([name, text]) => [name, redact(text)]),
    ) as typeof found;
    results.push({ rule: step.rule.id, title: step.rule.title, variant: step.variant, ...clean });
  }
  const count = (result: Result['result']) => results.filter((each) => each.result === result).length;
  const [passed, failed, skipped] = [count('passed'), count('failed'), count('skipped')];
  return { baseUrl: plan.baseUrl, startedAt, passed, failed, skipped, results };
}

const MASK = '****';
const TEXT_MAX = 400;

/**
 * Masks secrets and codes anywhere in a report, and PINs where they stand alone, since their four digits
 * occur in harmless numbers.
 */
function redactor(confidential: readonly string[]): (text: string) => string {
  const long = confidential
    .filter((value) => value.length > 4)
    .sort((one, other) => other.length - one.length);
  const short = new Set(confidential.filter((value) => value.length <= 4));
  return (text) =>
    long
      .reduce((clean, value) => clean.replaceAll(value, MASK), text)
      .replace(/(?<![\p{L}\d])\d{4}(?![\p{L}\d])/gu, (digits) => (short.has(digits) ? MASK : digits))
      .slice(0, TEXT_MAX);
}

/** The rules of each variant, then those between the two, then those for every response. */
function planSteps(merchants: readonly TestMerchant[], only: readonly string[]): Step[] {
  const isWanted = ({ id }: Rule) => only.length === 0 || only.includes(id);
  const ofMerchant = (merchant: TestMerchant, rules: readonly Rule[]) =>
    rules
      .filter(
        (rule) => isWanted(rule) && rule.variants.includes(merchant.variant) && rule.variants !== 'between',
      )
      .map((rule): Step => ({ rule, merchant, variant: merchant.variant }));
  const own = RULES.filter((rule) => !GENERAL.includes(rule));
  const inA = merchants.find(({ variant }) => variant === 'a') ?? merchants[0];
  const between = own.filter((rule) => rule.variants === 'between' && isWanted(rule) && inA !== undefined);
  return [
    ...merchants.flatMap((merchant) => ofMerchant(merchant, own)),
    ...between.map((rule): Step => ({ rule, merchant: inA as TestMerchant, variant: 'both' })),
    ...merchants.flatMap((merchant) => ofMerchant(merchant, GENERAL)),
  ];
}

function whyNot({ rule, merchant }: Step, permitsUpdates: boolean): string | undefined {
  if (rule.variants === 'between' && !merchant.other) return 'only one variant is tried';
  if (rule.needs && !permitsUpdates) return `the test merchant lacks the permission ${rule.needs}`;
  return undefined;
}

type Outcome =
  | { readonly result: 'passed' }
  | { readonly result: 'failed'; readonly expected: string; readonly seen: string }
  | { readonly result: 'skipped'; readonly why: string };

async function tryRule({ rule, merchant }: Step): Promise<Outcome | Limited> {
  try {
    await rule.run(merchant);
    return { result: 'passed' };
  } catch (error) {
    if (error instanceof Limited) return error;
    if (error instanceof Untried) return { result: 'skipped', why: error.message };
    if (error instanceof Broken) return { result: 'failed', expected: error.expected, seen: error.seen };
    // A missing field: the response does not have the form that the rule needs.
    return {
      result: 'failed',
      expected: 'an answer of the form of the interface',
      seen: (error as Error).message,
    };
  }
}

/** Checks that the merchant can be used, so that a missing float is not reported as forty broken rules. */
async function prepare(merchants: readonly TestMerchant[]): Promise<boolean> {
  let permitsUpdates = false;
  for (const merchant of merchants) {
    const list = await ask(merchant.get('/transactions'));
    if (list.statusCode === '01' || list.status === 401)
      throw new Unready('the credentials are not accepted (401)');
    if (list.statusCode === '04') throw new Unready('the test merchant is suspended (04)');
    const order = await ask(merchant.generate(1, 5));
    if (order.statusCode === '50') {
      throw new Unready('the test merchant needs a float: an order of one voucher of 5 is refused (50)');
    }
    if (order.statusCode === '03') throw new Unready('the test merchant lacks the permission generate (03)');
    if (merchant.variant !== 'a') continue;
    const update = await ask(merchant.update({ reference: merchant.fresh(), amountUsed: 0 }));
    permitsUpdates = update.statusCode !== '03';
  }
  return permitsUpdates;
}

async function ask(response: Promise<Seen>): Promise<Seen> {
  try {
    return await response;
  } catch (error) {
    if (error instanceof Broken) throw new Unready(`the service cannot be reached: ${error.seen}`);
    if (error instanceof Limited) throw new Unready(error.message);
    throw error;
  }
}
