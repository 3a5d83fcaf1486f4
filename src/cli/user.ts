import type { Command } from 'commander';
import { readConfig } from '../config.ts';
import type { Service } from '../context.ts';
import {
  endUserSessions,
  findUser,
  type Invitation,
  inviteUser,
  listUsers,
  resetUser,
  setUserDisabled,
  setUserRoles,
  type UserInfo,
} from '../people/users.ts';
import { linkTo } from './link.ts';
import { withOperator, withService } from './open.ts';
import { id, notFound, numberOf, printJson, printTable, say } from './output.ts';
import { parseId, parseText, repeat } from './parse.ts';

const EMAIL_MAX = 254;
const NAME_MAX = 100;
/** Far more people than sign in to one service. */
const LISTED_MAX = 1_000;

type Json = { json?: boolean };

const USER = '<user>';
const WHO = 'the user, by email address or id';

/** Registers `scrip user`: the people who sign in to the console and the portal. */
export function registerUser(program: Command): void {
  const user = program.command('user').description('people who sign in to the console and the portal');
  user
    .command('invite')
    .description('print a link by which a person sets a password and a second factor; it is valid once, for 72 hours')
    .argument('<email>', 'the email address')
    .requiredOption('--role <role>', 'a role; may be given several times', repeat)
    .option('--merchant <id>', 'the merchant whose portal it is (default: the console of the operator)')
    .option('--name <name>', 'the name (default: the first part of the address)')
    .option('--json', 'print JSON')
    .action(invite);
  user
    .command('list')
    .description('list the users')
    .option('--merchant <id>', 'those of a merchant')
    .option('--json', 'print JSON')
    .action(list);
  const change = (name: string, description: string) =>
    user.command(name).description(description).argument(USER, WHO).option('--json', 'print JSON');
  change('disable', 'let a user sign in no more, and end its sessions').action((who, options) =>
    disable(who, options, true),
  );
  change('enable', 'let a disabled user sign in again').action((who, options) => disable(who, options, false));
  change('set-roles', 'replace the roles of a user, who has to sign in again')
    .requiredOption('--role <role>', 'a role; may be given several times', repeat)
    .action(setRoles);
  change('reset-2fa', "take a user's password, second factors and sessions, and print a link to enroll again").action(
    reset,
  );
  change('end-sessions', 'end all sessions of a user').action(endSessions);
}

type InviteOptions = Json & { role: string[]; merchant?: string; name?: string };

async function invite(email: string, options: InviteOptions): Promise<void> {
  parseText(email, 'the email address', EMAIL_MAX);
  const name = options.name === undefined ? undefined : parseText(options.name, '--name', NAME_MAX);
  const merchantId = options.merchant === undefined ? null : parseId(options.merchant);
  await withOperator(async (operator) => {
    const invitation = await inviteUser(operator, { email, name, roles: options.role, merchantId });
    printInvitation(invitation, merchantId, options);
  });
}

function printInvitation({ userId, token, expiresAt }: Invitation, merchantId: number | null, { json }: Json): void {
  const link = linkTo(readConfig(), merchantId === null ? 'console' : 'portal', 'enroll', token);
  if (json) printJson({ id: id(userId), link, expiresAt });
  else say(`${link}\nSend this link to the person. It is valid once, until ${expiresAt.toISOString()}.`);
}

const toJson = (user: UserInfo) => ({ ...user, id: id(user.id), merchantId: id(user.merchantId) });

async function list(options: Json & { merchant?: string }): Promise<void> {
  const merchantId = options.merchant === undefined ? null : parseId(options.merchant);
  await withService(async ({ db }) => {
    const users = await listUsers(db, merchantId, 0, LISTED_MAX);
    if (options.json) return printJson(users.map(toJson));
    printTable(
      ['id', 'email', 'name', 'merchant', 'roles', 'state', 'second factor', 'signed in'],
      users.map((user) => [
        id(user.id),
        user.email,
        user.name,
        id(user.merchantId) ?? '-',
        user.roles.join(', '),
        user.state,
        user.factors.join(', ') || '-',
        user.signedInAt?.toISOString() ?? 'never',
      ]),
      ['email', 'name', 'roles'],
    );
  });
}

/** The user that the command line names. */
async function requireUser({ db }: Service, who: string): Promise<UserInfo> {
  const named = /^\d+$/.test(who) ? parseId(who, 'user') : who;
  return (await findUser(db, named)) ?? notFound('such user: `scrip user list` shows them');
}

async function disable(who: string, { json }: Json, disabled: boolean): Promise<void> {
  await withOperator(async (operator) => {
    const { id: userId } = await requireUser(operator.service, who);
    const user = await setUserDisabled(operator, userId, disabled);
    if (json) return printJson(toJson(user));
    say(disabled ? `${user.email} is disabled, and signed out everywhere` : `${user.email} can sign in again`);
  });
}

async function setRoles(who: string, { json, role }: Json & { role: string[] }): Promise<void> {
  await withOperator(async (operator) => {
    const { id: userId } = await requireUser(operator.service, who);
    const user = await setUserRoles(operator, userId, role);
    if (json) return printJson(toJson(user));
    say(`${user.email} has the roles ${user.roles.join(', ')}, and has to sign in again`);
  });
}

async function reset(who: string, options: Json): Promise<void> {
  await withOperator(async (operator) => {
    const { id: userId, merchantId } = await requireUser(operator.service, who);
    printInvitation(await resetUser(operator, userId), merchantId, options);
  });
}

async function endSessions(who: string, { json }: Json): Promise<void> {
  await withOperator(async (operator) => {
    const { id: userId, email } = await requireUser(operator.service, who);
    const ended = await endUserSessions(operator, userId);
    if (json) return printJson({ id: id(userId), ended });
    say(`${numberOf(ended, 'session')} of ${email} ended`);
  });
}
