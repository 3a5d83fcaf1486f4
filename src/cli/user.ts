import { readConfig } from '../config.ts';
import type { Service } from '../context.ts';
import { baseUrlOf } from '../network.ts';
import { listAccounts, type User } from '../people/users.ts';
import type { Adjusting } from './commands.ts';
import { notFound, wrongUsage } from './output.ts';

/** Users on the command line: named by their email address, too, and with whole links. */
export const USER: Adjusting = {
  toInput: async (service, input) =>
    input['id'] === undefined ? input : { ...input, id: await findId(service, String(input['id'])) },
  toOutput: (made) =>
    made['link'] === undefined ? made : { ...made, link: baseUrlOf(readConfig()) + made['link'] },
};

async function findId({ db }: Service, named: string): Promise<string> {
  if (/^\d+$/.test(named)) return named;
  const [user, ...others] = await listAccounts(db, named);
  // The operator's own account comes first, so that no merchant's invitation stands in its way.
  if (user && user.merchantId !== null && others.length > 0) wrongUsage(ambiguous([user, ...others]));
  return user ? String(user.id) : notFound('such user: `scrip user list` shows them');
}

const ambiguous = (users: readonly User[]) =>
  `several merchants have a user with this address; name one by its id: ${users
    .map(({ id, merchantId }) => `${id} (merchant ${merchantId})`)
    .join(', ')}`;
