import type { Command } from 'commander';
import { type JobResult, jobs } from '../operator/job-operations.ts';
import type { Job } from '../operator/job-schema.ts';
import { printFields, printTable, say } from './output.ts';
import { parseCount, parseId } from './parse.ts';
import { LISTED_MAX, listCommand, performCommand } from './perform.ts';

const LISTED = '50';

type Json = { json?: boolean };

export function registerJob(program: Command): void {
  const job = program.command('job').description('long work in the background');
  job
    .command('list')
    .description('list jobs, newest first')
    .option('--limit <count>', `how many, up to ${LISTED_MAX}`, LISTED)
    .option('--json', 'print JSON')
    .action(list);
  job
    .command('show <id>')
    .description('show a job and its progress')
    .option('--json', 'print JSON')
    .action((id: string, options: Json) => performCommand(jobs.show, jobOf(id), options, print));
  job
    .command('rows <id>')
    .description('list the result of each row of a job')
    .option('--limit <count>', `how many, up to ${LISTED_MAX}`, String(LISTED_MAX))
    .option('--json', 'print JSON')
    .action(rows);
  job
    .command('cancel <id>')
    .description('cancel a job; finished rows are not undone, and keep their results')
    .option('--json', 'print JSON')
    .action((id: string, options: Json) =>
      performCommand(jobs.cancel, jobOf(id), options, ({ state }) => say(`job ${id} is ${state}`)),
    );
}

const jobOf = (text: string) => ({ id: String(parseId(text, 'job')) });

function print(job: Job): void {
  printFields({ ...job, result: job.result === null ? null : JSON.stringify(job.result) });
}

async function list(options: Json & { limit: string }): Promise<void> {
  const limit = parseCount(options.limit, '--limit', 1, LISTED_MAX);
  await listCommand(jobs.list, {}, limit, options, (found: Job[]) =>
    printTable(
      ['id', 'operation', 'state', 'done', 'declined', 'begun', 'by'],
      found.map((each) => [
        each.id,
        each.operation,
        each.state,
        each.total === 0 ? '' : `${each.done} of ${each.total}`,
        String(each.failed),
        each.startedAt?.toISOString().slice(0, 19).replace('T', ' ') ?? '',
        each.createdBy,
      ]),
    ),
  );
}

async function rows(text: string, options: Json & { limit: string }): Promise<void> {
  const limit = parseCount(options.limit, '--limit', 1, LISTED_MAX);
  await listCommand(jobs.rows, jobOf(text), limit, options, (found: JobResult[]) =>
    printTable(
      ['row', 'voucher', 'outcome', 'message'],
      found.map((each) => [
        String(each.number),
        each.subject,
        each.outcome ?? 'not done',
        each.message ?? '',
      ]),
      ['message'],
    ),
  );
}
