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
    const verified = await verifyAudit(service, published);
    if (!verified.ok) process.exitCode = 1;
    if (options.json) return printJson(verified);
    const { broken, entries, head } = verified;
    const checked = numberOf(entries, 'entry');
    const entry = broken?.sequence == null ? '' : `entry ${broken.sequence}: `;
    say(
      broken
        ? `BROKEN after ${checked}: ${entry}${broken.problem}`
        : `intact: ${checked}, head ${head ?? '-'}`,
    );
  });
}
