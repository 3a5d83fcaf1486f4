import type { Command } from 'commander';
import { PERMISSIONS, type Service } from '../context.ts';
import {
  createKey,
  findKeyInfo,
  type KeyInfo,
  KeyRefused,
  limitKey,
  listKeys,
  pardon,
  revokeKey,
  rotateKey,
} from '../merchants/keys.ts';
import { findMerchant } from '../merchants/merchants.ts';
import { readNetwork } from '../network.ts';
import { withOperator, withService } from './open.ts';
import { fail, printFields, printJson, printTable, quoted } from './output.ts';
import { parseCount, parseDate, parseDuration, parseId, parseKeyId, parsePermission, repeat } from './parse.ts';

const MOST_PER_SECOND = 1_000_000;
const MOST_BURST = 10_000_000;

type Json = { json?: boolean };

export function registerKey(program: Command): void {
  const key = program.command('key').description('API keys: what merchants call with');
  key
    .command('create')
    .description('make another key for a merchant; the secret is shown once')
    .requiredOption('--merchant <id>', 'whose key')
    .option(
      '--scope <permission>',
      `a permission that it has, of the merchant's (repeatable; default: all of them): ${PERMISSIONS.join(', ')}`,
      repeat,
    )
    .option('--network <cidr>', 'a network that it may be used from (repeatable; default: anywhere)', repeat)
    .option('--expires <date>', 'a day, or a date and time (UTC), from which it no longer works')
    .option('--json', 'print JSON')
    .action(create);
  key
    .command('rotate <keyId>')
    .description('put a new key of the same scopes, networks and limit in its place; the secret is shown once')
    .option('--overlap <time>', 'how long the old one goes on, such as 30m, 24h or 7d', '24h')
    .option('--expires <date>', 'a day, or a date and time (UTC), from which the new one no longer works')
    .option('--json', 'print JSON')
    .action(rotate);
  key
    .command('revoke [keyId]')
    .description('end a key; within a second no process takes it any more')
    .option('--merchant <id>', 'only if it is a key of this merchant; without a key: the one that it has')
    .option('--key <keyId>', 'the key, where it is not given as an argument')
    .action(revoke);
  key
    .command('list')
    .description("a merchant's keys, when they were used last, and how much each called and guessed today")
    .requiredOption('--merchant <id>', 'whose keys')
    .option('--json', 'print JSON')
    .action(list);
  key.command('show <keyId>').description('one key').option('--json', 'print JSON').action(show);
  key
    .command('limit <keyId>')
    .description('limit how often it may call (97): by each process on its own; without --per-second there is no limit')
    .option('--per-second <count>', 'calls a second on average')
    .option('--burst <count>', 'calls at once (default: those of a second)')
    .action(limit);
  key
    .command('pardon <keyId>')
    .description("let a key go on that was blocked for guessing: today's guesses no longer count")
    .action(pardonKey);
}

type CreateOptions = Json & { merchant: string; scope?: string[]; network?: string[]; expires?: string };

async function create(options: CreateOptions): Promise<void> {
  const merchantId = parseId(options.merchant);
  const restrictions = {
    scopes: options.scope?.map(parsePermission),
    networks: options.network?.map(
      (text) => readNetwork(text) ?? fail(`${quoted(text)} is no network such as 10.0.0.0/8`),
    ),
    expiresAt: options.expires === undefined ? undefined : parseDate(options.expires, '--expires'),
  };
  await withOperator(async (operator) => {
    if (!(await findMerchant(operator.service.db, merchantId))) fail(`there is no merchant ${merchantId}`);
    const key = await createKey(operator, merchantId, restrictions).catch(explain);
    if (options.json) return printJson(key);
    printFields(key);
    process.stdout.write('The secret is not shown again.\n');
  });
}

async function rotate(text: string, options: Json & { overlap: string; expires?: string }): Promise<void> {
  const keyId = parseKeyId(text);
  const overlapMs = parseDuration(options.overlap, '--overlap');
  const expiresAt = options.expires === undefined ? null : parseDate(options.expires, '--expires');
  await withOperator(async (operator) => {
    const made =
      (await rotateKey(operator, keyId, overlapMs, expiresAt).catch(explain)) ?? fail(`there is no key ${keyId}`);
    const told = { keyId: made.keyId, secret: made.secret, replaces: keyId, until: made.until };
    if (options.json) return printJson(told);
    printFields(told);
    process.stdout.write('The secret is not shown again.\n');
  });
}

function explain(error: unknown): never {
  if (error instanceof KeyRefused) fail(error.message);
  throw error;
}

async function revoke(argument: string | undefined, options: { merchant?: string; key?: string }): Promise<void> {
  const typed = argument ?? options.key;
  const named = typed === undefined ? undefined : parseKeyId(typed);
  const merchantId = options.merchant === undefined ? null : parseId(options.merchant);
  if (named === undefined && merchantId === null) fail('which key: scrip key revoke KEYID');
  await withOperator(async (operator) => {
    const keyId = named ?? (await onlyKeyOf(operator.service, merchantId as number));
    if (!(await revokeKey(operator, keyId, merchantId)))
      fail(`there is no key ${keyId}${merchantId === null ? '' : ` of merchant ${merchantId}`}`);
    process.stdout.write('revoked\n');
  });
}

/** The key of a merchant that has one only: which of several is meant, nobody guesses. */
async function onlyKeyOf(service: Service, merchantId: number): Promise<string> {
  const now = service.clock();
  const keys = await listKeys(service, merchantId);
  const live = keys.filter(({ revokedAt, expiresAt }) => revokedAt === null && !(expiresAt && expiresAt <= now));
  const [only, ...others] = live.map(({ keyId }) => keyId);
  if (only === undefined) fail(`merchant ${merchantId} has no key to revoke`);
  if (others.length > 0) fail(`which key: scrip key revoke KEYID, one of ${[only, ...others].join(', ')}`);
  return only;
}

async function limit(text: string, options: { perSecond?: string; burst?: string }): Promise<void> {
  const keyId = parseKeyId(text);
  if (options.perSecond === undefined && options.burst !== undefined) fail('--burst goes with --per-second');
  const perSecond = options.perSecond && parseCount(options.perSecond, '--per-second', 1, MOST_PER_SECOND);
  const burst = options.burst ? parseCount(options.burst, '--burst', 1, MOST_BURST) : perSecond;
  await withOperator(async (operator) => {
    const wanted = perSecond && burst ? { perSecond, burst } : null;
    if (!(await limitKey(operator, keyId, wanted))) fail(`there is no key ${keyId}`);
    process.stdout.write(wanted ? `at most ${perSecond} calls a second, ${burst} at once\n` : 'no limit\n');
  });
}

async function list(options: Json & { merchant: string }): Promise<void> {
  const merchantId = parseId(options.merchant);
  await withService(async (service) => {
    const keys = await listKeys(service, merchantId);
    if (options.json) return printJson(keys.map(toJson));
    printTable(
      ['key', 'created', 'last used', 'ends', 'scopes', 'networks', 'limit', 'calls today', 'guesses today', 'blocked'],
      keys.map((each) => [
        each.keyId,
        each.createdAt.toISOString(),
        each.lastUsedAt?.toISOString() ?? 'never',
        endOf(each),
        each.scopes?.join('\n') ?? 'all',
        each.networks?.join('\n') ?? 'anywhere',
        each.limit ? `${each.limit.perSecond}/s, ${each.limit.burst} at once` : '',
        String(each.calls),
        String(each.guesses),
        each.blockedAt?.toISOString() ?? '',
      ]),
    );
  });
}

function endOf({ revokedAt, expiresAt }: KeyInfo): string {
  return revokedAt ? `revoked ${revokedAt.toISOString()}` : (expiresAt?.toISOString() ?? '');
}

async function show(text: string, options: Json): Promise<void> {
  const keyId = parseKeyId(text);
  await withService(async (service) => {
    const key = (await findKeyInfo(service, keyId)) ?? fail(`there is no key ${keyId}`);
    if (options.json) return printJson(toJson(key));
    printFields({
      ...toJson(key),
      scopes: key.scopes?.join(', ') ?? 'all',
      networks: key.networks?.join(', ') ?? 'anywhere',
      limit: key.limit && `${key.limit.perSecond} a second, ${key.limit.burst} at once`,
    });
  });
}

function toJson(key: KeyInfo) {
  return { ...key, merchantId: String(key.merchantId) };
}

async function pardonKey(text: string): Promise<void> {
  const keyId = parseKeyId(text);
  await withOperator(async (operator) => {
    if (!(await pardon(operator, keyId))) fail(`the key ${keyId} has not called today`);
    process.stdout.write('done\n');
  });
}
