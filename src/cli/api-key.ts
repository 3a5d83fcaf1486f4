import type { Command } from 'commander';
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
} from '../api-keys/keys.ts';
import { PERMISSIONS, type Service } from '../context.ts';
import { readNetwork } from '../network.ts';
import { requireMerchant } from './merchant.ts';
import { withOperator, withService } from './open.ts';
import {
  fail,
  id,
  notFound,
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
  parseCount,
  parseDuration,
  parseEnd,
  parseId,
  parseKeyId,
  parsePermission,
  repeat,
} from './parse.ts';

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
      `a permission that the key has, of those of the merchant (repeatable; default: all): ${PERMISSIONS.join(', ')}`,
      repeat,
    )
    .option('--network <cidr>', 'a network that it may be used from (repeatable; default: anywhere)', repeat)
    .option('--expires <date>', 'the last day on which it works (UTC), or a date and time')
    .option('--json', 'print JSON')
    .action(create);
  key
    .command('rotate <keyId>')
    .description('create a key of the same scopes, networks and limit, and end the old one after an overlap')
    .option('--overlap <time>', 'how long the old key still works, such as 30m, 24h or 7d', '24h')
    .option('--expires <date>', 'the last day on which the new key works (UTC), or a date and time')
    .option('--json', 'print JSON')
    .action(rotate);
  key
    .command('revoke [keyId]')
    .description('end a key: within a second no process accepts it')
    .option('--merchant <id>', 'its merchant; enough where the merchant has one key only')
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
    .description('limit the rate of its calls (97), in each process; without --per-second, remove the limit')
    .option('--per-second <count>', 'calls per second on average')
    .option('--burst <count>', 'calls at once (default: those of a second)')
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
  const merchantId = parseId(options.merchant);
  const restrictions = {
    scopes: options.scope?.map(parsePermission),
    networks: options.network?.map(
      (text) => readNetwork(text) ?? wrongUsage(`${quoted(text)} is not a network such as 10.0.0.0/8`),
    ),
    expiresAt: options.expires === undefined ? undefined : parseEnd(options.expires, '--expires'),
  };
  await withOperator(async (operator) => {
    await requireMerchant(operator.service.db, merchantId);
    const made = await createKey(operator, merchantId, restrictions).catch(explain);
    printSecret(made, options.json);
  });
}

async function rotate(text: string, options: Json & { overlap: string; expires?: string }): Promise<void> {
  const keyId = parseKeyId(text);
  const overlapMs = parseDuration(options.overlap, '--overlap');
  const expiresAt = options.expires === undefined ? null : parseEnd(options.expires, '--expires');
  await withOperator(async (operator) => {
    const made =
      (await rotateKey(operator, keyId, overlapMs, expiresAt).catch(explain)) ?? notFound(`key ${keyId}`);
    printSecret({ keyId: made.keyId, secret: made.secret, replaces: keyId, until: made.until }, options.json);
  });
}

function explain(error: unknown): never {
  if (error instanceof KeyRefused) fail(error.message);
  throw error;
}

async function revoke(
  argument: string | undefined,
  options: Json & { merchant?: string; key?: string },
): Promise<void> {
  if (argument !== undefined && options.key !== undefined)
    wrongUsage('give the key once: as the argument or by --key');
  const text = argument ?? options.key;
  const named = text === undefined ? undefined : parseKeyId(text);
  const merchantId = options.merchant === undefined ? null : parseId(options.merchant);
  if (named === undefined && merchantId === null) wrongUsage('which key? Give its id, or --merchant');
  await withOperator(async (operator) => {
    const keyId = named ?? (await onlyKeyOf(operator.service, merchantId as number));
    if (!(await revokeKey(operator, keyId, merchantId)))
      notFound(`key ${keyId}${merchantId === null ? '' : ` of merchant ${merchantId}`}`);
    await done(operator.service, keyId, options, 'revoked');
  });
}

/** The key of a merchant that has one only: nobody guesses which of several is meant. */
async function onlyKeyOf(service: Service, merchantId: number): Promise<string> {
  await requireMerchant(service.db, merchantId);
  const now = service.clock();
  const keys = await listKeys(service, merchantId);
  const live = keys.filter(
    ({ revokedAt, expiresAt }) => revokedAt === null && !(expiresAt && expiresAt <= now),
  );
  const [only, ...others] = live.map(({ keyId }) => keyId);
  if (only === undefined) fail(`merchant ${merchantId} has no key to revoke`);
  if (others.length > 0) wrongUsage(`which key? Merchant ${merchantId} has ${[only, ...others].join(', ')}`);
  return only;
}

async function limit(text: string, options: Json & { perSecond?: string; burst?: string }): Promise<void> {
  const keyId = parseKeyId(text);
  if (options.perSecond === undefined && options.burst !== undefined)
    wrongUsage('--burst needs --per-second');
  const perSecond = options.perSecond && parseCount(options.perSecond, '--per-second', 1, PER_SECOND_MAX);
  const burst = options.burst ? parseCount(options.burst, '--burst', 1, BURST_MAX) : perSecond;
  await withOperator(async (operator) => {
    const wanted = perSecond && burst ? { perSecond, burst } : null;
    if (!(await limitKey(operator, keyId, wanted))) notFound(`key ${keyId}`);
    const text = wanted
      ? `at most ${numberOf(wanted.perSecond, 'call')} a second, ${wanted.burst} at once`
      : 'no limit';
    await done(operator.service, keyId, options, text);
  });
}

async function pardonKey(text: string, options: Json): Promise<void> {
  const keyId = parseKeyId(text);
  await withOperator(async (operator) => {
    if (!(await pardon(operator, keyId))) {
      if (!(await findKeyInfo(operator.service, keyId))) notFound(`key ${keyId}`);
      fail(`the key ${keyId} has made no calls today: there is nothing to pardon`);
    }
    await done(operator.service, keyId, options, 'done');
  });
}

/** Prints a key that was changed, or a word about it. */
async function done(service: Service, keyId: string, options: Json, text: string): Promise<void> {
  if (!options.json) return say(text);
  printJson(toJson((await findKeyInfo(service, keyId)) ?? notFound(`key ${keyId}`)));
}

async function list(options: Json & { merchant: string }): Promise<void> {
  const merchantId = parseId(options.merchant);
  await withService(async (service) => {
    await requireMerchant(service.db, merchantId);
    const keys = await listKeys(service, merchantId);
    if (options.json) return printJson(keys.map(toJson));
    printTable(
      ['key', 'last used', 'ends', 'scopes', 'calls', 'guesses', 'state'],
      keys.map((each) => [
        each.keyId,
        toMinute(each.lastUsedAt) ?? 'never',
        toMinute(each.expiresAt) ?? '',
        each.scopes ?? 'all',
        String(each.calls),
        String(each.guesses),
        stateOf(each, service.clock()),
      ]),
    );
  });
}

/** A time as tables show it: to the minute, in UTC. */
const toMinute = (time: Date | null) => time?.toISOString().slice(0, 16).replace('T', ' ') ?? null;

function stateOf({ revokedAt, expiresAt, blockedAt }: KeyInfo, now: Date): string {
  if (revokedAt) return 'revoked';
  if (expiresAt && expiresAt <= now) return 'expired';
  return blockedAt ? 'blocked' : 'works';
}

async function show(text: string, options: Json): Promise<void> {
  const keyId = parseKeyId(text);
  await withService(async (service) => {
    const key = (await findKeyInfo(service, keyId)) ?? notFound(`key ${keyId}`);
    if (options.json) return printJson(toJson(key));
    printFields({
      ...toJson(key),
      scopes: key.scopes?.join(', ') ?? 'all',
      networks: key.networks?.join(', ') ?? 'anywhere',
      limit: key.limit && `${numberOf(key.limit.perSecond, 'call')} a second, ${key.limit.burst} at once`,
    });
  });
}

function toJson(key: KeyInfo) {
  return { ...key, merchantId: id(key.merchantId), calls: Number(key.calls) };
}
