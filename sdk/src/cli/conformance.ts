import { CONNECTION, type Command, fail, type Line, wrongUsage } from './command.ts';
import { type Report, type Result, RULES, runConformance, Unready } from './conformance/run.ts';
import { readCredentials } from './credentials.ts';
import { clean, printJson, printTable, write } from './output.ts';
import { showProgress } from './progress.ts';

const { 'base-url': BASE_URL, credentials: CREDENTIALS, json: JSON_OPTION } = CONNECTION as Required<typeof CONNECTION>;

export const CONFORMANCE: Command = {
  name: 'conformance',
  args: [],
  summary: "check a server against the interface's rules, with a test merchant",
  details: [
    'Orders some hundred vouchers, redeems from them and tries wrong PINs: use a merchant that is there for tests only. It needs a',
    'float of at least 20,000, and the permission update-redemption for the rules about updates. It makes some 20 wrong',
    'guesses, of which a service allows so many a day: after two runs in a day use another merchant.',
    'Exit status 1 where a rule is broken. The report holds no code, PIN or secret.',
  ],
  options: {
    ...(BASE_URL && { 'base-url': BASE_URL }),
    variant: { value: 'a|b|both', summary: 'which variant to check; both unless said', choices: ['a', 'b', 'both'] },
    product: { value: 'CODE', summary: 'the product that variant a orders; DEFAULT unless said' },
    only: { value: 'RULE,…', summary: 'check these rules only' },
    list: { summary: 'list the rules, and check nothing' },
    ...(CREDENTIALS && { credentials: CREDENTIALS }),
    ...(JSON_OPTION && { json: JSON_OPTION }),
  },
  run,
};

async function run(line: Line): Promise<void> {
  if (line.has('list')) return list(line);
  const variant = line.text('variant') ?? 'both';
  const only = (line.text('only') ?? '').split(',').filter((id) => id !== '');
  if (only.some((id) => !RULES.some((rule) => rule.id === id))) wrongUsage('--only names no such rule (see --list)');
  const { baseUrl, keyId, secret } = await readCredentials(line);
  if (!/^https?:\/\//.test(baseUrl)) wrongUsage('the base URL must be an http or https address');
  const progress = showProgress('checking rules', RULES.length);
  let report: Report;
  try {
    report = await runConformance({
      baseUrl,
      keyId,
      secret,
      variants: variant === 'both' ? ['a', 'b'] : [variant === 'a' ? 'a' : 'b'],
      product: line.text('product') ?? 'DEFAULT',
      only,
      onRule: (done, total) => progress.update(Math.floor((done / total) * RULES.length)),
    });
  } catch (error) {
    if (error instanceof Unready) fail(`nothing was checked: ${error.message}`);
    throw error;
  } finally {
    progress.stop();
  }
  if (line.has('json')) await printJson(report);
  else await print(report);
  // A report without a single rule that holds proves nothing.
  if (report.failed > 0 || report.passed === 0) process.exitCode = 1;
}

async function list(line: Line): Promise<void> {
  const rules = RULES.map(({ id, title, variants, needs }) => ({ id, variants, title, needs: needs ?? null }));
  if (line.has('json')) return printJson(rules);
  await printTable(
    ['rule', 'variants', 'what must be so'],
    rules.map(({ id, variants, title }) => [id, variants, title]),
  );
}

const WORDS: Readonly<Record<Result['result'], string>> = { passed: 'ok  ', failed: 'FAIL', skipped: 'skip' };

function linesOf(result: Result): string[] {
  const head = `${WORDS[result.result]}  ${result.variant.padEnd(4)}  ${result.rule}: ${result.title}`;
  if (result.result === 'failed') {
    return [head, `            expected ${clean(result.expected)}`, `            saw      ${clean(result.seen)}`];
  }
  return result.result === 'skipped' ? [head, `            ${clean(result.why)}`] : [head];
}

async function print({ baseUrl, startedAt, results, passed, failed, skipped }: Report): Promise<void> {
  const lines = [`${clean(baseUrl)}, ${startedAt}`, '', ...results.flatMap(linesOf), ''];
  await write(`${lines.join('\n')}\n${passed} passed, ${failed} failed, ${skipped} skipped\n`);
}
