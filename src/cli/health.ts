import type { Command } from 'commander';
import { readConfig } from '../config.ts';
import { isUnavailable, StartError } from '../db/errors.ts';
import { reconcile } from '../ledger/reconcile.ts';
import { examine, type Finding } from '../monitor/doctor.ts';
import { failure } from '../monitor/findings.ts';
import { readStatus } from '../monitor/status.ts';
import { deploymentOf } from './deployment.ts';
import { withService } from './open.ts';
import {
  CommandError,
  numberOf,
  printFields,
  printJson,
  printTable,
  STATUS,
  say,
  toJson,
  wrap,
} from './output.ts';

export function registerStatus(program: Command): void {
  program
    .command('status')
    .description('show the kind of database, its versions, and its shards with their sizes')
    .option('--json', 'print JSON')
    .action(runStatus);
}

const inMegabytes = (bytes: number) => String(Math.floor(bytes / 1024 ** 2));

async function runStatus(options: { json?: boolean }): Promise<void> {
  await withService(async ({ db }) => {
    const status = await readStatus(db);
    if (options.json) return printJson(status);
    const { serverVersion, citusVersion, schema, bytes, buckets } = status;
    const isCitus = status.kind === 'citus';
    printFields({
      database: isCitus ? 'distributed by Citus' : 'one PostgreSQL server',
      PostgreSQL: serverVersion,
      Citus: citusVersion ?? 'no',
      schema,
      [isCitus ? 'size of the coordinator' : 'size']: `${inMegabytes(bytes)} MB`,
      ...(isCitus && { buckets: buckets.length }),
    });
    if (isCitus)
      printTable(
        ['bucket', 'shard', 'worker', 'MB'],
        buckets.map((each) => [
          String(each.bucket),
          each.shardId,
          each.worker,
          each.bytes === null ? 'unknown' : inMegabytes(each.bytes),
        ]),
      );
  });
}

export function registerDoctor(program: Command): void {
  program
    .command('doctor')
    .description('check the installation, and say what to do; exit status 1 if something must be done')
    .option('--json', 'print JSON')
    .action(runDoctor);
}

async function runDoctor({ json = false }: { json?: boolean }): Promise<void> {
  let isOpen = false;
  await withService(async (service, config) => {
    isOpen = true;
    report(await examine(await deploymentOf(config), service.db), json);
  }).catch(async (error: Error) => {
    const isAway =
      isUnavailable(error) || (error instanceof CommandError && error.status === STATUS.unavailable);
    if (isOpen || !(isAway || error instanceof StartError)) throw error;
    const found = failure('database-away', 'mend-database', { error: error.message });
    const away = { check: 'database', ...found };
    report([...(await examine(await deploymentOf(readConfig()))), away], json);
  });
}

function report(findings: readonly Finding[], json: boolean): void {
  const failures = findings.filter(({ state }) => state === 'failure').length;
  const warnings = findings.filter(({ state }) => state === 'warning').length;
  if (failures > 0) process.exitCode = 1;
  if (json) {
    printJson({ ok: failures === 0, findings });
    return;
  }
  printTable(
    ['check', 'state', 'found'],
    findings.map(({ check, state, found, advice }) => [
      check,
      state === 'ok' ? 'ok' : state.toUpperCase(),
      [found, ...(advice === null ? [] : [`→ ${advice}`])].flatMap((line) => wrap(line, LINE_MAX)),
    ]),
  );
  if (failures + warnings === 0) say('All is well.');
  else say(`${numberOf(failures, 'failure')}, ${numberOf(warnings, 'warning')}: the arrows say what to do.`);
}

const LINE_MAX = 84;

export function registerReconcile(program: Command): void {
  program
    .command('reconcile')
    .description('prove the books: every balance, journal entry and batch; exit status 1 if anything differs')
    .option('--full', 'read everything, not only the rows after the last closed day')
    .option('--json', 'print JSON')
    .action(runReconcile);
}

async function runReconcile(options: { full?: boolean; json?: boolean }): Promise<void> {
  await withService(async (service) => {
    const result = await reconcile(service, { sinceClosing: !options.full });
    if (!result.ok) process.exitCode = 1;
    if (options.json) return printJson(result);
    printTable(
      ['check', 'checked', 'result'],
      result.checks.map(({ name, ok, checked }) => [name, String(checked), ok ? 'ok' : 'DIFFERS']),
    );
    printTable(
      ['accounts', 'currency', 'balance'],
      result.totals.map(({ kind, currency, balance }) => [kind, currency, balance]),
    );
    for (const { name, differing } of result.checks) {
      for (const each of differing) say(`${name}: ${toJson(each)}`);
    }
    if (result.since !== null)
      say(
        `Read what came after ${result.since}: \`scrip books verify\` proves the closed days, --full reads all.`,
      );
    say(result.ok ? 'Everything agrees.' : 'The books differ.');
  });
}
