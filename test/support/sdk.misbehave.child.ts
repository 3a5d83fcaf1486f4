import { Scrip, ScripError, UnknownOutcomeError } from '../../sdk/src/index.ts';

/** A till that works off the tasks of the misbehaving server, with the client for TypeScript. */

type Task = {
  readonly operation: string;
  readonly reference: string;
  readonly code: string;
  readonly pin: string;
  readonly amount: number;
};

const AT_ONCE = 64;

const settings = {
  baseUrl: process.env['SCRIP_BASE_URL'] ?? '',
  keyId: process.env['SCRIP_KEY_ID'] ?? '',
  secret: process.env['SCRIP_SECRET'] ?? '',
  portalToken: process.env['SCRIP_PORTAL_TOKEN'] ?? '',
  variant: process.env['SCRIP_VARIANT'] === 'b' ? 'b' : 'a',
  attemptTimeoutMs: 2_000,
  deadlineMs: 600_000,
  retryDelayMs: 2,
} as const;
const patient = new Scrip({ ...settings, maxAttempts: 30 });
const hasty = new Scrip({ ...settings, maxAttempts: 1 });

async function outcomeOf({ operation, ...request }: Task): Promise<string> {
  const isHasty = operation === 'give-up';
  try {
    await (isHasty ? hasty : patient).redeem(request);
    return 'paid';
  } catch (error) {
    if (!(error instanceof UnknownOutcomeError)) return refusedBy(error);
    const settling = isHasty ? patient.undo(request.reference) : error.resolve();
    return settling.then(() => (isHasty ? 'undone' : 'paid'), refusedBy);
  }
}

function refusedBy(error: unknown): string {
  if (!(error instanceof ScripError)) throw error;
  return error instanceof UnknownOutcomeError ? 'unknown' : 'refused';
}

const { tasks } = (await (await fetch(`${settings.baseUrl}/tasks`)).json()) as { tasks: Task[] };
const outcomes: object[] = [];
const waiting = tasks.values();
async function work(): Promise<void> {
  for (const task of waiting) outcomes.push({ reference: task.reference, outcome: await outcomeOf(task) });
}
await Promise.all(Array.from({ length: AT_ONCE }, work));
await fetch(`${settings.baseUrl}/outcomes`, { method: 'POST', body: JSON.stringify(outcomes) });
