import type { Command } from 'commander';
import { auditHead, listAudit } from '../audit/list.ts';
import { verifyAudit } from '../audit/verify.ts';
import { withService } from './open.ts';
import { fail, printFields, printJson, printTable } from './output.ts';
import { parseCount } from './parse.ts';

const MOST_ENTRIES = 10_000;

type Json = { json?: boolean };

export function registerAudit(program: Command): void {
  const audit = program
    .command('audit')
    .description('everything that operators changed: a chain that cannot be edited');
  audit
    .command('list')
    .description('the newest changes, newest first')
    .option('--subject <subject>', 'only of this one, such as "merchant 5"')
    .option('--limit <count>', `how many, up to ${MOST_ENTRIES}`, '50')
    .option('--json', 'print JSON')
    .action(list);
  audit
    .command('head')
    .description('the hash of the newest change: publish it, so that nothing before it can be rewritten unseen')
    .option('--json', 'print JSON')
    .action(head);
  audit
    .command('verify')
    .description(
      'prove that no change was edited, left out, moved, put in between or cut off; exit status 1 if one was',
    )
    .option(
      '--head <hash>',
      'a head that was published: finds what somebody wrote anew who has the key ring, or an older state put back',
    )
    .option('--json', 'print JSON')
    .action(verify);
}

async function list(options: Json & { subject?: string; limit: string }): Promise<void> {
  const count = parseCount(options.limit, '--limit', 1, MOST_ENTRIES);
  await withService(async ({ db }) => {
    const entries = await listAudit(db, options.subject ?? null, count);
    if (options.json) return printJson(entries);
    printTable(
      ['entry', 'time', 'who', 'from', 'what', 'to what', 'why', 'before', 'after'],
      entries.map((each) => [
        String(each.sequence),
        each.occurredAt.toISOString(),
        each.actor,
        each.origin,
        each.action,
        each.subject,
        each.reason ?? '',
        tell(each.before),
        tell(each.after),
      ]),
    );
  });
}

function tell(details: Readonly<Record<string, unknown>> | null): string {
  return Object.entries(details ?? {})
    .map(([name, value]) => `${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join('\n');
}

async function head(options: Json): Promise<void> {
  await withService(async ({ db }) => {
    const newest = (await auditHead(db)) ?? null;
    if (options.json) return printJson(newest);
    if (!newest) fail('nothing was changed yet');
    printFields(newest);
  });
}

async function verify(options: Json & { head?: string }): Promise<void> {
  const published = options.head?.toLowerCase() ?? null;
  if (published !== null && !/^[0-9a-f]{64}$/.test(published)) fail('--head takes the 64 digits of a hash');
  await withService(async (service) => {
    const verification = await verifyAudit(service, published);
    if (!verification.ok) process.exitCode = 1;
    if (options.json) return printJson(verification);
    const { ok, entries, head: last, broken } = verification;
    const where = broken?.sequence === null ? '' : `entry ${broken?.sequence}: `;
    process.stdout.write(
      ok
        ? `whole: ${entries} entries, head ${last ?? '-'}\n`
        : `BROKEN after ${entries} entries: ${where}${broken?.problem}\n`,
    );
  });
}
