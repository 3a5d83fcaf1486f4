import { startVerify, VERIFY_RUNS } from '../audit/verify.ts';
import { CSV_TYPE, csvText } from '../csv.ts';
import { type JobRuns, readRows, showJob } from '../jobs/jobs.ts';
import { RECONCILE_RUNS, startReconcile } from '../ledger/reconcile.ts';
import { type Caller, reading, tableOf } from '../operation.ts';
import { SEE_VOUCHERS } from '../principal.ts';
import { FileSchema, Id } from '../schema.ts';
import { BULK_RUNS, bulk, bulkCancel, preview } from '../vouchers/bulk.ts';

/** What operators have done in the background, of all nouns, and its results as a file. */

/** A job's rows as a file: the same list as `job.rows`. */
const rowsCsv = reading({
  name: 'job.rows-csv',
  summary: 'Get the result of each row of a job as CSV, also of a canceled job',
  path: '/jobs/:id/rows.csv',
  command: 'job rows',
  input: { id: Id('job') },
  output: FileSchema,
  files: ['text/csv'],
  roles: SEE_VOUCHERS,
  async run(caller, { id }) {
    await showJob.run(caller, { id });
    return {
      name: `job-${id}.csv`,
      mediaType: CSV_TYPE,
      content: linesOf(caller, id),
    };
  },
});

async function* linesOf({ service }: Caller, id: string): AsyncGenerator<string> {
  yield csvText([['row', 'serialNumber', 'outcome', 'message']]);
  for await (const page of readRows(service, id))
    yield csvText(page.map(({ number, subject, outcome, message }) => [number, subject, outcome, message]));
}

/** The jobs of operators, which every process with background work can run. */
export const JOB_RUNS: JobRuns = { ...BULK_RUNS, ...RECONCILE_RUNS, ...VERIFY_RUNS };

export const BACKGROUND = tableOf(rowsCsv, bulk, bulkCancel, preview, startReconcile, startVerify);
