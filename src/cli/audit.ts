import type { Command } from 'commander';
import { verifyAudit } from '../audit/verify.ts';
import { type AuditEntry, audits, type BrokenGlass, KINDS } from '../operator/audit.ts';
import { withService } from './open.ts';
import { numberOf, printFields, printJson, printTable, say, wrongUsage } from './output.ts';
import { checkDate, oneOf, parseCount } from './parse.ts';
import { LISTED_MAX, listCommand, performCommand } from './perform.ts';

type Json = { json?: boolean };

export function registerAudit(program: Command): void {
  const audit = program
    .command('audit')
    .description('the record of all changes by operators, a chain in which every edit is noticed');
  audit
    .command('list')
    .description('list changes by operators, newest first')
    .option('--subject <subject>', 'only those of this subject, such as "merchant 5"')
    .option('--actor <name>', 'only those by this actor')
    .option('--actor-kind <kind>', `only those by a ${KINDS.join(', ')}`)
    .option('--action <action>', 'only those of this action, such as merchant.suspend')
    .option('--from <date>', 'only those since this day, or date and time')
    .option('--to <date>', 'only those until this day, or date and time')
    .option('--limit <count>', `how many, up to ${LISTED_MAX}`, '50')
    .option('--json', 'print JSON')
    .action(list);
  audit
    .command('break-glass')
    .description('list operations of the last seven days that one person did with --break-glass')
    .option('--json', 'print JSON')
    .action(breakGlass);
  audit
    .command('head')
    .description(
      'print the hash of the newest change; once it is published, rewriting an earlier change is noticed',
    )
    .option('--json', 'print JSON')
    .action(head);
  audit
    .command('verify')
    .description('prove that no change was edited, removed, moved or inserted; exit status 1 if one was')
    .option(
      '--head <hash>',
      'a published head; with it, a chain rewritten with the key ring, or an older state put back, is found too',
    )
    .option('--json', 'print JSON')
    .action(verify);
}

type ListOptions = Json & {
  subject?: string;
  actor?: string;
  actorKind?: string;
  action?: string;
  from?: string;
  to?: string;
  limit: string;
};

async function list(options: ListOptions): Promise<void> {
  const { subject, actor, action, from, to } = options;
  const actorKind = options.actorKind && oneOf(options.actorKind, '--actor-kind', KINDS);
  const limit = parseCount(options.limit, '--limit', 1, LISTED_MAX);
  if (from !== undefined) checkDate(from, '--from');
  if (to !== undefined) checkDate(to, '--to');
  const filters = Object.fromEntries(
    Object.entries({ subject, actor, actorKind, action, from, to }).filter(
      ([, value]) => value !== undefined,
    ),
  );
  await listCommand(audits.list, filters, limit, options, (entries: AuditEntry[]) =>
    printTable(
      ['entry', 'time', 'who', 'from', 'action', 'subject', 'reason', 'before', 'after'],
      entries.map((each) => [
        each.sequence,
        each.occurredAt.toISOString(),
        each.actor,
        each.origin,
        each.action,
        each.subject,
        each.reason ?? '',
        detailLines(each.before),
        detailLines(each.after),
      ]),
    ),
  );
}

function detailLines(details: AuditEntry['before']): string[] {
  return Object.entries(details ?? {}).map(
    ([name, value]) => `${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`,
  );
}

async function head(options: Json): Promise<void> {
  await performCommand(audits.head, {}, options, printFields);
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
      const found = broken && { ...broken, sequence: sequence === null ? null : String(sequence) };
      return printJson({ ok, entries: Number(entries), head: last, broken: found });
    }
    const checked = numberOf(Number(entries), 'entry');
    if (ok) say(`intact: ${checked}, head ${last ?? '-'}`);
    else say(`BROKEN after ${checked}: ${sequence === null ? '' : `entry ${sequence}: `}${broken?.problem}`);
  });
}

async function breakGlass(options: Json): Promise<void> {
  await listCommand(audits.breakGlass, {}, undefined, options, (found: BrokenGlass[]) =>
    printTable(
      ['entry', 'time', 'who', 'from', 'action', 'subject', 'reason'],
      found.map((each) => [
        each.sequence,
        each.occurredAt.toISOString().slice(0, 19).replace('T', ' '),
        each.actor,
        each.origin,
        each.action,
        each.subject,
        each.reason ?? '',
      ]),
      ['who', 'from', 'subject', 'reason'],
    ),
  );
}
