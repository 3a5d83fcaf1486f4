import { type Access, Limited, type Seen, type Variant } from './probe.ts';
import { Broken, type Rule, Untried } from './rule.ts';
import { BATCHES } from './rules.batches.ts';
import { GENERAL } from './rules.general.ts';
import { LOOKUPS } from './rules.lookups.ts';
import { REFERENCES } from './rules.references.ts';
import { TRANSPORT } from './rules.transport.ts';
import { UPDATES } from './rules.updates.ts';
import { VOUCHERS } from './rules.vouchers.ts';
import { type Shared, Till } from './till.ts';

/** In the order in which they run: what looks at all answers comes last. */
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
  /** Rules to run, by their ids; all of them where it is empty. */
  readonly only: readonly string[];
  /** Told before each rule. */
  readonly onRule?: (done: number, total: number) => void;
};

/** The test merchant cannot be used: what it lacks, in words for who runs the kit. */
export class Unready extends Error {
  override readonly name = 'Unready';
}

type Step = { readonly rule: Rule; readonly till: Till; readonly variant: Variant | 'both' };

/**
 * Runs the rules against a server. Nothing of the report holds a code, a PIN or a secret.
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
  const tills = plan.variants.map((variant) => new Till(variant, plan, shared));
  const [first, second] = tills;
  if (first && second) {
    first.other = second;
    second.other = first;
  }
  const permitsUpdates = await prepare(tills);
  const steps = planSteps(tills, plan.only);
  const secrets = [plan.secret, ...tills.map(({ probe }) => probe.authorization.slice('Basic '.length))];
  const results: Result[] = [];
  let stopped: string | undefined;
  for (const [done, step] of steps.entries()) {
    plan.onRule?.(done, steps.length);
    const why = stopped ?? whyNot(step, permitsUpdates);
    const outcome = why === undefined ? await tryRule(step) : ({ result: 'skipped', why } as const);
    if (outcome instanceof Limited) stopped = outcome.message;
    const told = outcome instanceof Limited ? ({ result: 'skipped', why: outcome.message } as const) : outcome;
    const redact = redactor([...secrets, ...shared.confidential]);
    const clean = Object.fromEntries(Object.entries(told).map(([name, text]) => [name, redact(text)])) as typeof told;
    results.push({ rule: step.rule.id, title: step.rule.title, variant: step.variant, ...clean });
  }
  const count = (result: Result['result']) => results.filter((each) => each.result === result).length;
  const [passed, failed, skipped] = [count('passed'), count('failed'), count('skipped')];
  return { baseUrl: plan.baseUrl, startedAt, passed, failed, skipped, results };
}

const MASK = '****';
const LONGEST_TEXT = 400;

/**
 * Takes out of a text what must not stand in a report: secrets and codes wherever they are, PINs where they stand alone,
 * since their four digits are in many a harmless number.
 */
function redactor(confidential: readonly string[]): (text: string) => string {
  const long = confidential.filter((value) => value.length > 4).sort((one, other) => other.length - one.length);
  const short = new Set(confidential.filter((value) => value.length <= 4));
  return (text) =>
    long
      .reduce((clean, value) => clean.replaceAll(value, MASK), text)
      .replace(/(?<![\p{L}\d])\d{4}(?![\p{L}\d])/gu, (digits) => (short.has(digits) ? MASK : digits))
      .slice(0, LONGEST_TEXT);
}

/** Rules of one variant after the other, then those between the two; the general ones at the very end. */
function planSteps(tills: readonly Till[], only: readonly string[]): Step[] {
  const isWanted = ({ id }: Rule) => only.length === 0 || only.includes(id);
  const ofTill = (till: Till, rules: readonly Rule[]) =>
    rules
      .filter((rule) => isWanted(rule) && rule.variants.includes(till.variant) && rule.variants !== 'between')
      .map((rule): Step => ({ rule, till, variant: till.variant }));
  const own = RULES.filter((rule) => !GENERAL.includes(rule));
  const inA = tills.find(({ variant }) => variant === 'a') ?? tills[0];
  const between = own.filter((rule) => rule.variants === 'between' && isWanted(rule) && inA !== undefined);
  return [
    ...tills.flatMap((till) => ofTill(till, own)),
    ...between.map((rule): Step => ({ rule, till: inA as Till, variant: 'both' })),
    ...tills.flatMap((till) => ofTill(till, GENERAL)),
  ];
}

function whyNot({ rule, till }: Step, permitsUpdates: boolean): string | undefined {
  if (rule.variants === 'between' && !till.other) return 'only one variant is tried';
  if (rule.needs && !permitsUpdates) return `the test merchant lacks the permission ${rule.needs}`;
  return undefined;
}

type Outcome =
  | { readonly result: 'passed' }
  | { readonly result: 'failed'; readonly expected: string; readonly seen: string }
  | { readonly result: 'skipped'; readonly why: string };

async function tryRule({ rule, till }: Step): Promise<Outcome | Limited> {
  try {
    await rule.run(till);
    return { result: 'passed' };
  } catch (error) {
    if (error instanceof Limited) return error;
    if (error instanceof Untried) return { result: 'skipped', why: error.message };
    if (error instanceof Broken) return { result: 'failed', expected: error.expected, seen: error.seen };
    // A field that is not there, of an answer that has another form than the rule could go on with.
    return { result: 'failed', expected: 'an answer of the form of the interface', seen: (error as Error).message };
  }
}

/** Finds out whether the merchant has what the rules take, so that a lack of it is not told as forty broken rules. */
async function prepare(tills: readonly Till[]): Promise<boolean> {
  let permitsUpdates = false;
  for (const till of tills) {
    const list = await ask(till.get('/transactions'));
    if (list.statusCode === '01' || list.status === 401) throw new Unready('the credentials are not accepted (401)');
    if (list.statusCode === '04') throw new Unready('the test merchant is suspended (04)');
    const order = await ask(till.generate(1, 5));
    if (order.statusCode === '50') {
      throw new Unready('the test merchant needs a float: an order of one voucher of 5 is refused (50)');
    }
    if (order.statusCode === '03') throw new Unready('the test merchant lacks the permission generate (03)');
    if (till.variant !== 'a') continue;
    const update = await ask(till.update({ reference: till.fresh(), amountUsed: 0 }));
    permitsUpdates = update.statusCode !== '03';
  }
  return permitsUpdates;
}

async function ask(asked: Promise<Seen>): Promise<Seen> {
  try {
    return await asked;
  } catch (error) {
    if (error instanceof Broken) throw new Unready(`the service cannot be reached: ${error.seen}`);
    if (error instanceof Limited) throw new Unready(error.message);
    throw error;
  }
}
