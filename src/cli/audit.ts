import type { Command } from 'commander';
import { type AuditEntry, auditHead, listAudit } from '../audit/list.ts';
import { verifyAudit } from '../audit/verify.ts';
import { withService } from './open.ts';
import { fail, numberOf, printFields, printJson, printTable, say, wrongUsage } from './output.ts';
import { parseCount } from './parse.ts';

const ENTRIES_MAX = 10_000;

type Json = { json?: boolean };

export function registerAudit(program: Command): void {
  const audit = program
    .command('audit')
    .description('the record of all changes by operators, a chain that cannot be edited unnoticed');
  audit
    .command('list')
    .description('list the newest changes, newest first')
    .option('--subject <subject>', 'only those of this subject, such as "merchant 5"')
    .option('--limit <count>', `how many, up to ${ENTRIES_MAX}`, '50')
    .option('--json', 'print JSON')
    .action(list);
  audit
    .command('head')
    .description(
      'print the hash of the newest change: once it is published, nothing before it can be rewritten unnoticed',
    )
    .option('--json', 'print JSON')
    .action(head);
  audit
    .command('verify')
    .description('prove that no change was edited, removed, moved or inserted; exit status 1 if one was')
    .option(
      '--head <hash>',
      'a published head: also finds a chain that was rewritten with the key ring, or an older state put back',
    )
    .option('--json', 'print JSON')
    .action(verify);
}

async function list(options: Json & { subject?: string; limit: string }): Promise<void> {
  const limit = parseCount(options.limit, '--limit', 1, ENTRIES_MAX);
  await withService(async ({ db }) => {
    const entries = await listAudit(db, options.subject ?? null, limit);
    if (options.json) return printJson(entries.map(toJson));
    printTable(
      ['entry', 'time', 'who', 'from', 'action', 'subject', 'reason', 'before', 'after'],
      entries.map((each) => [
        String(each.sequence),
        each.occurredAt.toISOString(),
        each.actor,
        each.origin,
        each.action,
        each.subject,
        each.reason ?? '',
        detailLines(each.before),
        detailLines(each.after),
      ]),
    );
  });
}

function detailLines(details: AuditEntry['before']): string[] {
  return Object.entries(details ?? {}).map(
    ([name, value]) => `${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`,
  );
}

/** Entries are counted without a gap, so their sequence is a number. */
function toJson<Entry extends { readonly sequence: bigint }>(entry: Entry) {
  return { ...entry, sequence: Number(entry.sequence) };
}

async function head(options: Json): Promise<void> {
  await withService(async ({ db }) => {
    const newest = (await auditHead(db)) ?? null;
    if (options.json) return printJson(newest && toJson(newest));
    if (!newest) fail('nothing was changed yet');
    printFields(newest);
  });
}

async function verify(options: Json & { head?: string }): Promise<void> {
  const published = options.head?.toLowerCase() ?? null;
  if (published !== null && !/^[0-9a-f]{64}$/.test(published))
    wrongUsage('--head takes a hash of 64 hexadecimal digits, as `scrip audit head` prints it');
  await withService(async (service) => {
    const { ok, entries, head: last, broken } = await verifyAudit(service, published);
    if (!ok) process.exitCode = 1;
    const sequence = broken?.sequence ?? null;
    if (options.json) {
      const found = broken && { ...broken, sequence: sequence === null ? null : Number(sequence) };
      return printJson({ ok, entries: Number(entries), head: last, broken: found });
    }
    const checked = numberOf(Number(entries), 'entry');
    if (ok) say(`intact: ${checked}, head ${last ?? '-'}`);
    else say(`BROKEN after ${checked}: ${sequence === null ? '' : `entry ${sequence}: `}${broken?.problem}`);
  });
}
