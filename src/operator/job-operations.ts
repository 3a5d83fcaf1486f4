import Type, { type Static } from 'typebox';
import { audit } from '../audit/audit.ts';
import { verifyAudit } from '../audit/verify.ts';
import { csvText } from '../books/formats.ts';
import { reconcile } from '../ledger/reconcile.ts';
import { alone, type Caller, changing, reading, tableOf } from '../operation.ts';
import { PAGE, Page, pageOf, readCursor } from '../page.ts';
import { CARE, SEE_VOUCHERS, VERIFY } from '../principal.ts';
import { notFound, Problem } from '../problem.ts';
import { FileSchema, Id, Input, NullableText, Reason, toId } from '../schema.ts';
import { BULK_RUNS, bulk, bulkCancel, preview } from './bulk.ts';
import { JobSchema, toJobJson } from './job-schema.ts';
import { cancelJobRow, listJobResults, listJobRows } from './jobs.queries.ts';
import { createJob, findJob, type JobRow, type JobRuns } from './jobs.ts';

const JobId = Id('job');

async function requireJob({ service }: Caller, text: string): Promise<JobRow> {
  const job = await findJob(service.db, toId(text));
  if (!job) throw notFound(`job ${text}`);
  return job;
}

const list = reading({
  name: 'job.list',
  summary: 'List jobs, newest first',
  method: 'GET',
  path: '/jobs',
  command: 'job list',
  input: Input({ ...PAGE }),
  output: Page(JobSchema),
  roles: SEE_VOUCHERS,
  async run({ service }, { cursor, limit = 50 }) {
    const [before = null] = readCursor('jobs', {}, cursor) ?? [];
    const rows = await service.readDb.query<JobRow>(
      listJobRows(before === null ? null : Number(before), limit + 1),
    );
    return pageOf('jobs', {}, rows.map(toJobJson), limit, ({ id }) => [Number(id)]);
  },
});

const show = reading({
  name: 'job.show',
  summary: 'Get a job and its progress',
  description: 'The same as events (`text/event-stream`) at `/jobs/{id}/events`,',
  method: 'GET',
  path: '/jobs/:id',
  command: 'job show',
  input: Input({ id: JobId }),
  output: JobSchema,
  roles: SEE_VOUCHERS,
  run: async (caller, { id }) => toJobJson(await requireJob(caller, id)),
});

const RowSchema = Type.Object({
  number: Type.Integer({ minimum: 1 }),
  subject: Type.String({ description: 'The serial number of a voucher.' }),
  outcome: NullableText,
  message: NullableText,
});

export type JobResult = Static<typeof RowSchema>;

const rows = reading({
  name: 'job.rows',
  summary:
    'List the result of each row of a job: `ok`, the code of a refusal, or null if it was not processed',
  method: 'GET',
  path: '/jobs/:id/rows',
  command: 'job rows',
  input: Input({ id: JobId, ...PAGE }),
  output: Page(RowSchema),
  roles: SEE_VOUCHERS,
  async run(caller, { id, cursor, limit = 50 }) {
    const job = await requireJob(caller, id);
    const [after = 0] = readCursor(`job ${id}`, {}, cursor) ?? [];
    const found = await caller.service.db.query<JobResult>(listJobResults(job.id, Number(after), limit + 1));
    return pageOf(`job ${id}`, {}, found, limit, ({ number }) => [number]);
  },
});

const CSV_PAGE = 200;

const rowsCsv = reading({
  name: 'job.rows-csv',
  summary: 'Get the result of each row of a job as CSV, also of a canceled job',
  method: 'GET',
  path: '/jobs/:id/rows.csv',
  command: 'job rows',
  input: Input({ id: JobId }),
  output: FileSchema,
  files: ['text/csv'],
  roles: SEE_VOUCHERS,
  async run(caller, { id }) {
    const job = await requireJob(caller, id);
    return {
      name: `job-${id}.csv`,
      mediaType: 'text/csv; charset=utf-8',
      content: linesOf(caller, job.id),
    };
  },
});

async function* linesOf({ service }: Caller, jobId: number): AsyncGenerator<string> {
  yield csvText([['row', 'serialNumber', 'outcome', 'message']], 'standard');
  for (let after = 0, found: JobResult[] = []; ; after = found.at(-1)?.number ?? 0) {
    found = await service.db.query<JobResult>(listJobResults(jobId, after, CSV_PAGE));
    if (found.length > 0)
      yield csvText(
        found.map(({ number, subject, outcome, message }) => [number, subject, outcome, message]),
        'standard',
      );
    if (found.length < CSV_PAGE) return;
  }
}

const cancel = changing({
  name: 'job.cancel',
  summary: 'Cancel a job; finished rows keep their results',
  method: 'POST',
  path: '/jobs/:id/cancel',
  command: 'job cancel',
  input: Input({ id: JobId, reason: Reason }),
  output: JobSchema,
  roles: CARE,
  approval: alone('It stops work. What was done stays done.'),
  async run(caller, { id }) {
    const { db, clock } = caller.service;
    const before = await requireJob(caller, id);
    const [job] = await db.query<JobRow>(cancelJobRow(before.id, clock()));
    if (!job) throw new Problem('conflict', `job ${id} is ${before.state}: it has ended`);
    const noted = { state: before.state, done: before.done };
    await db.transaction((tx) =>
      audit(tx, caller, {
        action: 'job.cancel',
        subject: `job ${id}`,
        before: noted,
        after: { asked: true },
      }),
    );
    return toJobJson(job);
  },
});

const startReconcile = changing({
  name: 'ledger.reconcile',
  summary: 'Prove the books in the background; the result is in the job',
  method: 'POST',
  path: '/reconcile',
  command: 'reconcile',
  input: Input({
    full: Type.Optional(
      Type.Boolean({ description: 'Everything, not only the rows after the last closed day.' }),
    ),
  }),
  output: JobSchema,
  roles: VERIFY,
  approval: alone('It changes nothing: it proves the books.'),
  audit: null,
  status: 202,
  run: (caller, input) =>
    caller.service.db.transaction(async (tx) =>
      toJobJson(await createJob(tx, caller, 'ledger.reconcile', input, [])),
    ),
});

const startVerify = changing({
  name: 'audit.verify',
  summary: 'Prove in the background that no entry of the audit was edited, removed, moved or inserted',
  method: 'POST',
  path: '/audit/verify',
  command: 'audit verify',
  input: Input({
    head: Type.Optional(Type.String({ pattern: '^[0-9a-fA-F]{64}$', description: 'A published head.' })),
  }),
  output: JobSchema,
  roles: VERIFY,
  approval: alone('It changes nothing: it proves the audit.'),
  audit: null,
  status: 202,
  run: (caller, input) =>
    caller.service.db.transaction(async (tx) =>
      toJobJson(await createJob(tx, caller, 'audit.verify', input, [])),
    ),
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

export const jobs = { list, show, rows, rowsCsv, cancel };

export const JOBS = tableOf(...Object.values(jobs), bulk, bulkCancel, preview, startReconcile, startVerify);
