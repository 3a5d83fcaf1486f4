import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { Refused } from './exactly-once.batch.ts';
import { type Certificate, checkAgain, sentenceOf } from './exactly-once.certificate.ts';
import { Unreachable } from './exactly-once.client.ts';
import { NoHistory } from './exactly-once.history.ts';
import { Interrupted, runExactlyOnce } from './exactly-once.ts';
import { misbehave, type Verdict } from './misbehave.ts';
import type { Variant } from './probe.ts';
import { type Report, type Result, RULES, runConformance, Unready } from './run.ts';

/** The command line of the kit. */

const FAILED = 1;
const WRONG_USAGE = 2;

const USAGE = `Usage: scrip-conformance --url URL [options]
       scrip-conformance --exactly-once --url URL [--minutes NUMBER] [--restart COMMAND] [options]
       scrip-conformance --check FILE
       scrip-conformance --misbehave [--port PORT] [--calls NUMBER] [--seed NUMBER] [--json]

Checks a server of the voucher interface against its rules, with a test merchant.

It orders some hundred vouchers, redeems from them and tries wrong PINs, so use a merchant that exists
for tests only. The merchant needs a float of at least 20,000, and the permission update-redemption for
the rules about updates. A run makes some 20 wrong guesses, of which a service allows a limited number a
day: after two runs in a day, use another merchant. The report holds no code, PIN or secret.

With --exactly-once it sends calls for some minutes: copies and rivals at the same time, connections cut
before and after the effect, wrong PINs, restarts. It writes history.ndjson, with every call and answer, and
certificate.json: whether every effect happened exactly once. Nobody else may use the merchant meanwhile. A
batch costs 60 of its float, and a run of ten minutes generates some 25,000. --check checks such files again.

With --misbehave it serves tasks instead, to a client in any language that is to be checked: redemptions and
undoings, whose requests it cuts, delays, duplicates and answers wrongly. It ends when the client has reported
its outcomes, and prints how many payments were doubled, unknown or wrong.

Options:
  --url URL         the server, such as https://vouchers.example.com (or SCRIP_BASE_URL)
  --key ID          the id of the test merchant's API key (or SCRIP_KEY_ID); also ID:SECRET, which other users
                    of the machine can see
  --variant VALUE   a, b or both (default: both)
  --product CODE    the product that variant A orders (default: DEFAULT)
  --only RULE,...   check these rules only
  --list            list the rules, and check nothing
  --exactly-once    write a history and a certificate
  --minutes NUMBER  how long that run sends calls (default: 10)
  --callers NUMBER  how many batches it uses at the same time (default: 8)
  --restart COMMAND restarts the server; run up to six times, by a shell
  --drain           at the end, spend the rest of the float, and check that no more is spent than there is
  --float NUMBER    the float at the beginning: with --drain, checks that none of it is lost
  --out FOLDER      where it writes the two files (default: the current folder)
  --check FILE      check a history again, and the certificate beside it
  --misbehave       check a client, with a server that misbehaves
  --port PORT       where that server listens (default: a free port)
  --calls NUMBER    how many tasks it gives (default: 10000)
  --seed NUMBER     what calls and faults depend on (default: 1)
  --json            print one JSON document on stdout
  --version         print the version
  --help            print this help

Environment:
  SCRIP_SECRET      the secret of the key

Exit status: 0 every rule holds, 1 a rule is broken or nothing could be checked, 2 wrong usage. With
--exactly-once and --check: 0 every effect happened exactly once, else 1. With --misbehave: 0 nothing was
doubled, unknown or wrong, else 1.
`;

class UsageError extends Error {}

function readArguments() {
  try {
    return parseArgs({
      options: {
        url: { type: 'string' },
        key: { type: 'string' },
        variant: { type: 'string', default: 'both' },
        product: { type: 'string', default: 'DEFAULT' },
        only: { type: 'string', default: '' },
        list: { type: 'boolean', default: false },
        'exactly-once': { type: 'boolean', default: false },
        minutes: { type: 'string', default: '10' },
        callers: { type: 'string', default: '8' },
        restart: { type: 'string' },
        drain: { type: 'boolean', default: false },
        float: { type: 'string' },
        out: { type: 'string', default: '.' },
        check: { type: 'string' },
        misbehave: { type: 'boolean', default: false },
        port: { type: 'string', default: '0' },
        calls: { type: 'string', default: '10000' },
        seed: { type: 'string', default: '1' },
        json: { type: 'boolean', default: false },
        version: { type: 'boolean', default: false },
        help: { type: 'boolean', default: false },
      },
    }).values;
  } catch {
    // The parser's message repeats the arguments, one of which may be a mistyped secret.
    throw new UsageError('an argument is not known');
  }
}

async function main(): Promise<number> {
  const values = readArguments();
  if (values.help) return print(USAGE);
  if (values.version) return print(`${version()}\n`);
  if (values.misbehave) return checkClient(values);
  if (values.check !== undefined) return printCertificate(await checkAgain(values.check), values.json);
  if (values['exactly-once']) return certifyServer(values);
  if (values.list) return print(values.json ? toJson(listRules()) : listRules().map(ruleLine).join(''));
  const only = values.only.split(',').filter((id) => id !== '');
  if (only.some((id) => !RULES.some((rule) => rule.id === id)))
    throw new UsageError('--only: no such rule (see --list)');
  const report = await runConformance({
    ...readAccess(values),
    variants: readVariants(values),
    product: values.product,
    only,
    onRule: showProgress,
  });
  showProgress();
  print(values.json ? toJson(report) : reportText(report));
  // A report without a passed rule proves nothing.
  return report.failed > 0 || report.passed === 0 ? FAILED : 0;
}

function version(): string {
  const text = readFileSync(new URL('../package.json', import.meta.url), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}

type Values = ReturnType<typeof readArguments>;

function readVariants({ variant }: Values): readonly Variant[] {
  if (variant !== 'a' && variant !== 'b' && variant !== 'both')
    throw new UsageError('--variant takes a, b or both');
  return variant === 'both' ? ['a', 'b'] : [variant];
}

/** Reads the number of an option. */
function readNumber(values: Values, name: 'port' | 'calls' | 'seed' | 'minutes' | 'callers'): number {
  const pattern = name === 'minutes' ? /^\d{1,4}(\.\d{1,3})?$/ : /^\d{1,7}$/;
  if (!pattern.test(values[name])) throw new UsageError(`--${name} takes a whole number`);
  return Number(values[name]);
}

function readFloat({ float, drain }: Values): number | undefined {
  if (float === undefined) return undefined;
  if (!drain || !/^\d{1,12}(\.\d{1,4})?$/.test(float))
    throw new UsageError('--float takes the amount of the float, with --drain');
  return Number(float);
}

/** Sends calls to a server, until the time is over or the process is stopped. */
async function certifyServer(values: Values): Promise<number> {
  const stop = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort());
  const { restart } = values;
  const [minutes, callers] = [readNumber(values, 'minutes'), readNumber(values, 'callers')];
  if (!(minutes > 0 && callers > 0)) throw new UsageError('--minutes and --callers take more than 0');
  const certificate = await runExactlyOnce({
    ...readAccess(values),
    variants: readVariants(values),
    product: values.product,
    kit: version(),
    minutes,
    callers,
    seed: readNumber(values, 'seed'),
    drain: values.drain,
    float: readFloat(values),
    out: values.out,
    restart: restart === undefined ? undefined : () => runCommand(restart),
    signal: stop.signal,
  });
  return printCertificate(certificate, values.json);
}

async function runCommand(command: string): Promise<void> {
  const [status] = await once(spawn(command, { shell: true, stdio: 'ignore' }), 'exit');
  if (status !== 0) throw new Unready(`the command of --restart ended with ${status}`);
}

function printCertificate(certificate: Certificate, asJson: boolean): number {
  print(asJson ? toJson(certificate) : `${readable(sentenceOf(certificate))}\n`);
  return certificate.verdict === 'exactly once' ? 0 : FAILED;
}

/** Serves tasks to a client, until it has reported all outcomes or the process is stopped. */
async function checkClient(values: Values): Promise<number> {
  const [port, calls] = [readNumber(values, 'port'), readNumber(values, 'calls')];
  const seed = readNumber(values, 'seed');
  const server = await misbehave(calls, seed, port);
  const { baseUrl, keyId, secret, portalToken } = server;
  const settings = {
    SCRIP_BASE_URL: baseUrl,
    SCRIP_KEY_ID: keyId,
    SCRIP_SECRET: secret,
    SCRIP_PORTAL_TOKEN: portalToken,
  };
  print(
    values.json
      ? `${JSON.stringify(settings)}\n`
      : `${Object.entries(settings)
          .map(([name, value]) => `export ${name}=${value}\n`)
          .join('')}`,
  );
  const stopped = new Promise<Verdict>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve(server.judge()));
  });
  const verdict = await Promise.race([server.finished, stopped]);
  server.close();
  const { doubled, unknown, wrong, requests, faults, examples } = verdict;
  const faulty = Object.values(faults).reduce((sum, count) => sum + count, 0);
  const counts = `${calls} calls, ${requests} requests, ${faulty} of them with a fault`;
  const text = `${counts}\n${doubled} doubled, ${unknown} unknown, ${wrong} wrong\n`;
  print(values.json ? `${JSON.stringify(verdict)}\n` : text + examples.map((each) => `  ${each}\n`).join(''));
  return doubled + unknown + wrong > 0 ? FAILED : 0;
}

function readAccess({ url, key }: Values) {
  const { SCRIP_BASE_URL, SCRIP_KEY_ID, SCRIP_SECRET } = process.env;
  const baseUrl = url ?? SCRIP_BASE_URL;
  if (!baseUrl) throw new UsageError('--url is missing');
  if (!/^https?:\/\//.test(baseUrl)) throw new UsageError('--url takes an http or https URL');
  const [keyId, secret = SCRIP_SECRET] = (key ?? SCRIP_KEY_ID ?? '').split(':');
  if (!keyId || !secret)
    throw new UsageError('--key or SCRIP_KEY_ID, and SCRIP_SECRET in the environment, must be set');
  return { baseUrl, keyId, secret };
}

/** A line on stderr, redrawn in place if stderr is a terminal; removed if there is no argument. */
function showProgress(done?: number, total?: number): void {
  if (process.stderr.isTTY)
    process.stderr.write(done === undefined ? '\r\x1b[2K' : `\r\x1b[2Krule ${done} of ${total}`);
}

function print(text: string): number {
  process.stdout.write(text);
  return 0;
}

const toJson = (value: unknown) => `${JSON.stringify(value, null, 2)}\n`;

const listRules = () =>
  RULES.map(({ id, title, variants, needs = null }) => ({ id, variants, title, needs }));

const ruleLine = ({ id, variants, title }: ReturnType<typeof listRules>[number]) =>
  `${id.padEnd(24)}${variants.padEnd(9)}${title}\n`;

const WORDS: Readonly<Record<Result['result'], string>> = { passed: 'ok  ', failed: 'FAIL', skipped: 'skip' };

function resultLines(result: Result): string[] {
  const head = `${WORDS[result.result]}  ${result.variant.padEnd(4)}  ${result.rule}: ${result.title}`;
  if (result.result === 'failed')
    return [
      head,
      `            expected ${readable(result.expected)}`,
      `            saw      ${readable(result.seen)}`,
    ];
  return result.result === 'skipped' ? [head, `            ${readable(result.why)}`] : [head];
}

/** A text of the server without characters that could drive a terminal or reorder its lines. */
function readable(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '\u{fffd}');
}

function reportText({ baseUrl, startedAt, results, passed, failed, skipped }: Report): string {
  const lines = [`${readable(baseUrl)}, ${startedAt}`, '', ...results.flatMap(resultLines), ''];
  return `${lines.join('\n')}\n${passed} passed, ${failed} failed, ${skipped} skipped\n`;
}

/** Errors whose text is for the user. */
const KNOWN = [UsageError, Unready, NoHistory, Interrupted, Refused, Unreachable];

try {
  process.exitCode = await main();
} catch (error) {
  const isKnown = KNOWN.some((known) => error instanceof known);
  const text = isKnown ? (error as Error).message : String((error as Error).stack ?? error);
  showProgress();
  process.stderr.write(
    `scrip-conformance: ${error instanceof Unready ? 'nothing was checked: ' : ''}${text}\n`,
  );
  process.exitCode = error instanceof UsageError ? WRONG_USAGE : FAILED;
}
