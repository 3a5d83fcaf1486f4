import type { Command } from 'commander';
import { readConfig } from '../config.ts';
import type { Service } from '../context.ts';
import {
  confirmOne,
  disableUser,
  enableUser,
  endAllSessions,
  invite,
  listAllUsers,
  removeInvitation,
  resetSecondFactor,
  setRolesOf,
  type toUserJson,
} from '../operator/users.ts';
import { listAccounts, type UserInfo } from '../people/users.ts';
import { baseUrlOf } from './link.ts';
import { notFound, numberOf, printJson, printTable, say, wrongUsage } from './output.ts';
import { parseCount, parseId, parseText, repeat } from './parse.ts';
import { listCommand, performCommand } from './perform.ts';

const EMAIL_MAX = 254;
const LISTED = '50';
const LISTED_MAX = 10_000;

type Json = { json?: boolean };
type User = ReturnType<typeof toUserJson>;

/** Registers `scrip user`: the people who sign in to the console and the portal. */
export function registerUser(program: Command): void {
  const user = program.command('user').description('people who sign in to the console and the portal');
  user
    .command('invite <email>')
    .description(
      'print a link with which a person sets a password and a second factor; it is valid once, for 72 hours',
    )
    .requiredOption('--role <role>', 'a role (repeatable)', repeat)
    .option('--merchant <id>', 'the merchant whose portal it is (default: the console of the operator)')
    .option('--name <name>', 'the name (default: the first part of the address)')
    .option('--json', 'print JSON')
    .action(inviteUser);
  user
    .command('list')
    .description('list users, oldest first')
    .option('--merchant <id>', 'those of a merchant')
    .option('--limit <count>', `how many, up to ${LISTED_MAX}`, LISTED)
    .option('--json', 'print JSON')
    .action(list);
  const change = (name: string, description: string) =>
    user
      .command(`${name} <user>`)
      .description(`${description} (by email address or id)`)
      .option('--json', 'print JSON');
  change('disable', 'let a user sign in no more, and end its sessions').action(disable);
  change('enable', 'let a disabled user sign in again').action(enable);
  change('set-roles', 'replace the roles of a user, who has to sign in again')
    .requiredOption('--role <role>', 'a role (repeatable)', repeat)
    .action(setRoles);
  change(
    'reset-2fa',
    "take a user's password, second factors and sessions, and print a link to enroll again",
  ).action(reset);
  change('confirm', 'confirm that an account is that of the person it names').action(confirm);
  change('remove', 'remove an invited user who has never enrolled').action(remove);
  change('end-sessions', 'end all sessions of a user').action(endSessions);
}

type InviteOptions = Json & { role: string[]; merchant?: string; name?: string };

async function inviteUser(email: string, { role, merchant, name, json }: InviteOptions): Promise<void> {
  const input = {
    email: parseText(email, 'the email address', EMAIL_MAX),
    roles: role as User['roles'],
    ...(name !== undefined && { name }),
    ...(merchant !== undefined && { merchantId: String(parseId(merchant)) }),
  };
  await performCommand(invite, input, {}, (made) => printInvitation(made, json));
}

type Invitation = { readonly link: string; readonly expiresAt: Date };

function printInvitation(invitation: Invitation, json: boolean | undefined): void {
  const link = baseUrlOf(readConfig()) + invitation.link;
  if (json) printJson({ ...invitation, link });
  else say(link);
  if (!json)
    say(`Send this link to the person. It is valid once, until ${invitation.expiresAt.toISOString()}.`);
}

async function list({ merchant, limit, json }: Json & { merchant?: string; limit: string }): Promise<void> {
  const filters = merchant === undefined ? {} : { merchantId: String(parseId(merchant)) };
  const most = parseCount(limit, '--limit', 1, LISTED_MAX);
  await listCommand<typeof listAllUsers.input, User>(
    listAllUsers as never,
    filters,
    most,
    { json: json === true },
    (users) =>
      printTable(
        ['id', 'email', 'name', 'merchant', 'roles', 'state', 'second factor', 'last signed in'],
        users.map((each) => [
          each.id,
          each.email,
          each.name,
          each.merchantId ?? '',
          each.roles,
          each.confirmed ? each.state : `${each.state}, not confirmed`,
          each.factors.join(', '),
          each.signedInAt?.toISOString().slice(0, 16).replace('T', ' ') ?? 'never',
        ]),
        ['email', 'name'],
      ),
  );
}

/** Reads the id of the user that the command line names. */
const named = (who: string) => async (service: Service) => {
  if (/^\d+$/.test(who)) return { id: String(parseId(who, 'user')) };
  const [user, ...others] = await listAccounts(service.db, who);
  // The operator's own account comes first, so that no merchant's invitation stands in its way.
  if (user && user.merchantId !== null && others.length > 0) wrongUsage(ambiguous([user, ...others]));
  return user ? { id: String(user.id) } : notFound('such user: `scrip user list` shows them');
};

const ambiguous = (users: readonly UserInfo[]) =>
  `several merchants have a user with this address; name one by its id: ${users
    .map(({ id, merchantId }) => `${id} (merchant ${merchantId})`)
    .join(', ')}`;

async function disable(who: string, options: Json): Promise<void> {
  await performCommand(disableUser, named(who), options, ({ email }) =>
    say(`${email} is disabled, and signed out everywhere`),
  );
}

async function enable(who: string, options: Json): Promise<void> {
  await performCommand(enableUser, named(who), options, ({ email }) => say(`${email} can sign in again`));
}

async function setRoles(who: string, { role, ...options }: Json & { role: string[] }): Promise<void> {
  const input = async (service: Service) => ({
    ...(await named(who)(service)),
    roles: role as User['roles'],
  });
  await performCommand(setRolesOf, input, options, ({ email, roles }) =>
    say(`${email} has the roles ${roles.join(', ')}, and has to sign in again`),
  );
}

async function reset(who: string, { json }: Json): Promise<void> {
  await performCommand(resetSecondFactor, named(who), {}, (made) => printInvitation(made, json));
}

async function confirm(who: string, options: Json): Promise<void> {
  await performCommand(confirmOne, named(who), options, ({ email }) => say(`${email} is confirmed`));
}

async function remove(who: string, options: Json): Promise<void> {
  await performCommand(removeInvitation, named(who), options, ({ email }) => say(`${email} is removed`));
}

async function endSessions(who: string, options: Json): Promise<void> {
  await performCommand(endAllSessions, named(who), options, ({ ended }) =>
    say(`${numberOf(ended, 'session')} ended`),
  );
}
