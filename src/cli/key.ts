import type { Command } from 'commander';
import { createKey, listKeys, pardon, revokeKey } from '../merchants/keys.ts';
import { findMerchant } from '../merchants/merchants.ts';
import { withOperator, withService } from './open.ts';
import { fail, printFields, printJson, printTable } from './output.ts';
import { parseId } from './parse.ts';

export function registerKey(program: Command): void {
  const key = program.command('key').description('API keys: what merchants call with');
  key
    .command('create')
    .description('make another key for a merchant; the secret is shown once')
    .requiredOption('--merchant <id>', 'whose key')
    .option('--json', 'print JSON')
    .action(create);
  key
    .command('revoke [keyId]')
    .description('end a key; within a second no process takes it any more')
    .option('--merchant <id>', 'only if it is a key of this merchant')
    .option('--key <keyId>', 'the key, where it is not given as an argument')
    .action(revoke);
  key
    .command('list')
    .description("a merchant's keys, and how much each called and guessed today")
    .requiredOption('--merchant <id>', 'whose keys')
    .option('--json', 'print JSON')
    .action(list);
  key
    .command('pardon <keyId>')
    .description("let a key go on that was blocked for guessing: today's guesses no longer count")
    .action(pardonKey);
}

async function create(options: { merchant: string; json?: boolean }): Promise<void> {
  const merchantId = parseId(options.merchant);
  await withOperator(async (operator) => {
    if (!(await findMerchant(operator.service.db, merchantId))) fail(`there is no merchant ${merchantId}`);
    const key = await createKey(operator, merchantId);
    if (options.json) return printJson(key);
    printFields(key);
    process.stdout.write('The secret is not shown again.\n');
  });
}

async function revoke(argument: string | undefined, options: { merchant?: string; key?: string }): Promise<void> {
  const keyId = argument ?? options.key ?? fail('which key: scrip key revoke KEYID');
  const merchantId = options.merchant === undefined ? null : parseId(options.merchant);
  await withOperator(async (operator) => {
    if (!(await revokeKey(operator, keyId, merchantId)))
      fail(`there is no key ${keyId}${merchantId === null ? '' : ` of merchant ${merchantId}`}`);
    process.stdout.write('revoked\n');
  });
}

async function list(options: { merchant: string; json?: boolean }): Promise<void> {
  const merchantId = parseId(options.merchant);
  await withService(async (service) => {
    const keys = await listKeys(service, merchantId);
    if (options.json) return printJson(keys);
    printTable(
      ['key', 'created', 'revoked', 'calls today', 'guesses today', 'blocked'],
      keys.map((each) => [
        each.keyId,
        each.createdAt.toISOString(),
        each.revokedAt?.toISOString() ?? '',
        String(each.calls),
        String(each.guesses),
        each.blockedAt?.toISOString() ?? '',
      ]),
    );
  });
}

async function pardonKey(keyId: string): Promise<void> {
  await withOperator(async (operator) => {
    if (!(await pardon(operator, keyId))) fail(`the key ${keyId} has not called today`);
    process.stdout.write('done\n');
  });
}
