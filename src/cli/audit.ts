import type { Command } from 'commander';
import { verifyAudit } from '../audit/verify.ts';
import { withService } from './open.ts';
import { numberOf, printJson, say, wrongUsage } from './output.ts';

type Json = { json?: boolean };

/** Adds `verify`, which has no operation: it reads the whole chain. */
export function addVerify(audit: Command): void {
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
