import type { Command } from 'commander';
import { apiKeys, KeyId } from '../api-keys/keys.ts';
import type { Service } from '../context.ts';
import { MerchantId } from '../schema.ts';
import { withOperator } from './open.ts';
import { fail, printJson, say, wrongUsage } from './output.ts';
import { parseAs, performWith } from './perform.ts';

type Json = { json?: boolean };

/** Adds `revoke`, which finds the only key of a merchant. */
export function addRevoke(key: Command): void {
  key
    .command('revoke [keyId]')
    .description('end a key, or the only key of a merchant: within a second no process accepts it')
    .option('--merchant <id>', 'the merchant; the key can be left out if the merchant has only one')
    .option('--key <keyId>', 'the key, instead of the argument')
    .option('--json', 'print JSON')
    .action(revoke);
}

async function revoke(
  argument: string | undefined,
  options: Json & { merchant?: string; key?: string },
): Promise<void> {
  if (argument !== undefined && options.key !== undefined)
    wrongUsage('give the key once: as the argument or by --key');
  const text = argument ?? options.key;
  const named = text === undefined ? undefined : parseAs(KeyId, text, 'the key');
  const { merchant } = options;
  const merchantId = merchant === undefined ? undefined : parseAs(MerchantId, merchant, '--merchant');
  if (named === undefined && merchantId === undefined) wrongUsage('which key? Give its id, or --merchant');
  await withOperator(async ({ service }) => {
    const keyId = named ?? (await onlyKeyOf(service, merchantId as string));
    const key = await performWith(service, apiKeys.revoke, { keyId, ...(merchantId && { merchantId }) });
    if (options.json) printJson(key);
    else say('revoked');
  });
}

/** Returns the key of a merchant that has only one. Of several, the command does not guess. */
async function onlyKeyOf(service: Service, merchantId: string): Promise<string> {
  const now = service.clock();
  const { items } = await performWith(service, apiKeys.list, { merchantId });
  const live = items.filter(
    ({ revokedAt, expiresAt }) => revokedAt === null && !(expiresAt && expiresAt <= now),
  );
  const [only, ...others] = live.map(({ keyId }) => keyId);
  if (only === undefined) fail(`merchant ${merchantId} has no key to revoke`);
  if (others.length > 0) wrongUsage(`which key? Merchant ${merchantId} has ${[only, ...others].join(', ')}`);
  return only;
}
