import type { Command } from 'commander';
import type { Static } from 'typebox';
import { createToken, listTokens, revokeToken, type Token } from '../operator/token-operations.ts';
import { printFields, printTable, say } from './output.ts';
import { parseCount, parseId, repeat } from './parse.ts';
import { listCommand, performCommand } from './perform.ts';

const LISTED = '50';
const LISTED_MAX = 10_000;

type Json = { json?: boolean };

export function registerToken(program: Command): void {
  const token = program
    .command('token')
    .description('tokens, with which machines call /operator/v1 and /portal/v1');
  token
    .command('create')
    .description('create a token, which is shown once')
    .requiredOption('--role <role>', 'a role of the token (repeatable)', repeat)
    .option('--name <name>', 'what the token is for (default: its roles)')
    .option('--merchant <id>', 'the merchant whose token it is: it may call /portal/v1 only')
    .option('--network <cidr>', 'a network that it may be used from (repeatable; default: anywhere)', repeat)
    .option('--step-up', 'let it run operations that ask people for a second factor')
    .option(
      '--expires <date>',
      'the last day on which it works (UTC), or a date and time (default: in 90 days)',
    )
    .option('--json', 'print JSON')
    .action(create);
  token
    .command('list')
    .description('list tokens, newest first')
    .option('--limit <count>', `how many, up to ${LISTED_MAX}`, LISTED)
    .option('--json', 'print JSON')
    .action(list);
  token
    .command('revoke <id>')
    .description('end a token: no process accepts it any more')
    .option('--json', 'print JSON')
    .action((text: string, options: Json) =>
      performCommand(revokeToken, { id: String(parseId(text, 'token')) }, options, () => say('revoked')),
    );
}

type CreateOptions = Json & {
  role: string[];
  name?: string;
  merchant?: string;
  network?: string[];
  stepUp?: boolean;
  expires?: string;
};

async function create(options: CreateOptions): Promise<void> {
  const { role, name, merchant, network, stepUp, expires } = options;
  const input = {
    roles: role as Static<typeof createToken.input>['roles'],
    ...(name !== undefined && { name }),
    ...(merchant !== undefined && { merchantId: String(parseId(merchant)) }),
    ...(network !== undefined && { networks: network }),
    ...(stepUp !== undefined && { stepUp }),
    ...(expires !== undefined && { expiresAt: expires }),
  };
  await performCommand(createToken, input, options, (made) => {
    printFields(made);
    say('The token is not shown again.');
  });
}

async function list(options: Json & { limit: string }): Promise<void> {
  const limit = parseCount(options.limit, '--limit', 1, LISTED_MAX);
  await listCommand<typeof listTokens.input, Token>(listTokens as never, {}, limit, options, (tokens) =>
    printTable(
      ['id', 'name', 'roles', 'merchant', 'expires', 'last used', 'state'],
      tokens.map((each) => [
        each.id,
        each.name,
        each.roles,
        each.merchantId ?? '',
        each.expiresAt.toISOString().slice(0, 10),
        each.lastUsedAt?.toISOString().slice(0, 16).replace('T', ' ') ?? 'never',
        stateOf(each),
      ]),
      ['name'],
    ),
  );
}

function stateOf({ revokedAt, expiresAt }: Token): string {
  if (revokedAt) return 'revoked';
  return expiresAt <= new Date() ? 'expired' : 'works';
}
