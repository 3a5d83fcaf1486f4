import Type, { type TProperties } from 'typebox';
import { verifyAudit } from '../audit/verify.ts';
import { CSV_TYPE, csvText } from '../csv.ts';
import { createJob, type JobRuns, JobSchema, readRows, showJob } from '../jobs/jobs.ts';
import { reconcile } from '../ledger/reconcile.ts';
import { alone, type Caller, changing, reading, tableOf } from '../operation.ts';
import { SEE_VOUCHERS, VERIFY } from '../principal.ts';
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

/** Defines an operation that starts a proof, a job as a whole. */
function proving<Properties extends TProperties>(definition: {
  readonly name: string;
  readonly summary: string;
  readonly path: string;
  readonly command?: string;
  readonly input: Properties;
}) {
  return changing({
    ...definition,
    output: JobSchema,
    roles: VERIFY,
    approval: alone('It changes nothing: it proves what is stored.'),
    audit: null,
    status: 202,
    run: (caller, input) =>
      caller.service.db.transaction((tx) => createJob(tx, caller, definition.name, input, [])),
  });
}

const startReconcile = proving({
  name: 'ledger.reconcile',
  summary: 'Prove the books in the background; the result is in the job',
  path: '/reconcile',
  command: 'reconcile',
  input: {
    full: Type.Optional(
      Type.Boolean({ description: 'Everything, not only the rows after the last closed day.' }),
    ),
  },
});

const startVerify = proving({
  name: 'audit.verify',
  summary: 'Prove in the background that no entry of the audit was edited, removed, moved or inserted',
  path: '/audit/verify',
  input: {
    head: Type.Optional(
      Type.String({
        title: 'Head to compare',
        pattern: '^[0-9a-fA-F]{64}$',
        description: 'A published head.',
      }),
    ),
  },
});

/** The jobs of operators, which every process with background work can run. */
export const JOB_RUNS: JobRuns = {
  ...BULK_RUNS,
  'ledger.reconcile': {
    whole: ({ service }, { full = false }: { full?: boolean }) => reconcile(service, { sinceClosing: !full }),
  },
  'audit.verify': {
    async whole({ service }, { head = null }: { head?: string | null }) {
      const { broken, ...verified } = await verifyAudit(service, head?.toLowerCase() ?? null);
      const sequence = broken?.sequence ?? null;
      return {
        ...verified,
        broken: broken && { ...broken, sequence: sequence === null ? null : String(sequence) },
      };
    },
  },
};

export const OPERATIONS = tableOf(rowsCsv, bulk, bulkCancel, preview, startReconcile, startVerify);
