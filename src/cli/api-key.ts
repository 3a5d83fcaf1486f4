import type { Command } from 'commander';
import { PERMISSIONS, type Service } from '../context.ts';
import { readNetwork } from '../network.ts';
import { type ApiKey, apiKeys } from '../operator/api-keys.ts';
import { withOperator } from './open.ts';
import {
  fail,
  numberOf,
  printFields,
  printJson,
  printSecret,
  printTable,
  quoted,
  say,
  wrongUsage,
} from './output.ts';
import {
  checkDate,
  parseCount,
  parseDuration,
  parseId,
  parseKeyId,
  parsePermission,
  repeat,
} from './parse.ts';
import { listCommand, performCommand, performWith } from './perform.ts';

const PER_SECOND_MAX = 1_000_000;
const BURST_MAX = 10_000_000;

type Json = { json?: boolean };

export function registerApiKey(program: Command): void {
  const key = program.command('api-key').description('API keys, with which merchants call');
  key
    .command('create')
    .description('create another key for a merchant; its secret is shown once')
    .requiredOption('--merchant <id>', 'the merchant')
    .option(
      '--scope <permission>',
      `one of the merchant's permissions, which the key gets (repeatable; default: all): ${PERMISSIONS.join(', ')}`,
      repeat,
    )
    .option(
      '--network <cidr>',
      'a network from which the key may be used (repeatable; default: anywhere)',
      repeat,
    )
    .option('--expires <date>', 'the last day on which it works, or a date and time')
    .option('--json', 'print JSON')
    .action(create);
  key
    .command('rotate <keyId>')
    .description('create a key of the same scopes, networks and limit, and end the old one after an overlap')
    .option('--overlap <time>', 'how long the old key still works, such as 30m, 24h or 7d', '24h')
    .option('--expires <date>', 'the last day on which the new key works, or a date and time')
    .option('--json', 'print JSON')
    .action(rotate);
  key
    .command('revoke [keyId]')
    .description('end a key: within a second no process accepts it')
    .option('--merchant <id>', 'its merchant; enough if the merchant has only one key')
    .option('--key <keyId>', 'the key, instead of the argument')
    .option('--json', 'print JSON')
    .action(revoke);
  key
    .command('list')
    .description("list a merchant's keys, when they were last used, and their calls and guesses of today")
    .requiredOption('--merchant <id>', 'the merchant')
    .option('--json', 'print JSON')
    .action(list);
  key.command('show <keyId>').description('show a key').option('--json', 'print JSON').action(show);
  key
    .command('limit <keyId>')
    .description(
      'limit the rate of calls with a key (97), in each process; without --per-second, remove the limit',
    )
    .option('--per-second <count>', 'calls per second on average')
    .option('--burst <count>', 'calls at once (default: the same as --per-second)')
    .option('--json', 'print JSON')
    .action(limit);
  key
    .command('pardon <keyId>')
    .description("end a key's block for guessing: the guesses of today no longer count")
    .option('--json', 'print JSON')
    .action(pardonKey);
}

type CreateOptions = Json & { merchant: string; scope?: string[]; network?: string[]; expires?: string };

async function create(options: CreateOptions): Promise<void> {
  const { scope, network, expires } = options;
  for (const text of network ?? [])
    if (!readNetwork(text)) wrongUsage(`${quoted(text)} is not a network such as 10.0.0.0/8`);
  const input = {
    merchantId: String(parseId(options.merchant)),
    ...(scope !== undefined && { scopes: [...new Set(scope.map(parsePermission))] }),
    ...(network !== undefined && { networks: network }),
    ...ending(expires),
  };
  await performCommand(apiKeys.create, input, options, (made) => printSecret(made, false));
}

/** Returns the checked expiry of a key, if there is one. */
function ending(expires: string | undefined): { expiresAt?: string } {
  if (expires === undefined) return {};
  checkDate(expires, '--expires');
  return { expiresAt: expires };
}

async function rotate(text: string, options: Json & { overlap: string; expires?: string }): Promise<void> {
  parseDuration(options.overlap, '--overlap');
  const input = { keyId: parseKeyId(text), overlap: options.overlap, ...ending(options.expires) };
  await performCommand(apiKeys.rotate, input, options, (made) => printSecret(made, false));
}

async function revoke(
  argument: string | undefined,
  options: Json & { merchant?: string; key?: string },
): Promise<void> {
  if (argument !== undefined && options.key !== undefined)
    wrongUsage('give the key once: as the argument or by --key');
  const text = argument ?? options.key;
  const named = text === undefined ? undefined : parseKeyId(text);
  const merchantId = options.merchant === undefined ? undefined : String(parseId(options.merchant));
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

async function limit(text: string, options: Json & { perSecond?: string; burst?: string }): Promise<void> {
  const keyId = parseKeyId(text);
  const { perSecond, burst } = options;
  if (perSecond === undefined && burst !== undefined) wrongUsage('--burst needs --per-second');
  const input = {
    keyId,
    perSecond: perSecond === undefined ? null : parseCount(perSecond, '--per-second', 1, PER_SECOND_MAX),
    ...(burst !== undefined && { burst: parseCount(burst, '--burst', 1, BURST_MAX) }),
  };
  await performCommand(apiKeys.limit, input, options, ({ limit: set }) =>
    say(set ? `at most ${numberOf(set.perSecond, 'call')} a second, ${set.burst} at once` : 'no limit'),
  );
}

async function pardonKey(text: string, options: Json): Promise<void> {
  await performCommand(apiKeys.pardon, { keyId: parseKeyId(text) }, options, () => say('done'));
}

async function list(options: Json & { merchant: string }): Promise<void> {
  await listCommand(
    apiKeys.list,
    { merchantId: String(parseId(options.merchant)) },
    undefined,
    options,
    (keys: ApiKey[]) =>
      printTable(
        ['key', 'last used', 'ends', 'scopes', 'calls', 'guesses', 'state'],
        keys.map((each) => [
          each.keyId,
          toMinute(each.lastUsedAt) ?? 'never',
          toMinute(each.expiresAt) ?? '',
          each.scopes ?? 'all',
          String(each.calls),
          String(each.guesses),
          stateOf(each, new Date()),
        ]),
      ),
  );
}

/** Formats a time for tables: to the minute, in UTC. */
const toMinute = (time: Date | null) => time?.toISOString().slice(0, 16).replace('T', ' ') ?? null;

function stateOf({ revokedAt, expiresAt, blockedAt }: ApiKey, now: Date): string {
  if (revokedAt) return 'revoked';
  if (expiresAt && expiresAt <= now) return 'expired';
  return blockedAt ? 'blocked' : 'works';
}

async function show(text: string, options: Json): Promise<void> {
  await performCommand(apiKeys.show, { keyId: parseKeyId(text) }, options, (key) =>
    printFields({
      ...key,
      scopes: key.scopes?.join(', ') ?? 'all',
      networks: key.networks?.join(', ') ?? 'anywhere',
      limit: key.limit && `${numberOf(key.limit.perSecond, 'call')} a second, ${key.limit.burst} at once`,
    }),
  );
}
