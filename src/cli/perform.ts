import type { Static, TObject, TSchema } from 'typebox';
import type { Service } from '../context.ts';
import type { Operation } from '../operator/operations.ts';
import { perform } from '../operator/perform.ts';
import type { Principal } from '../operator/principal.ts';
import { actor } from './actor.ts';
import { withOperator, withService } from './open.ts';
import { printJson } from './output.ts';

/** The account of the machine that runs a command: whoever has the key ring and the database has every right. */
function commandLine(): Principal {
  const { name, origin } = actor();
  return {
    kind: 'command-line',
    id: null,
    name,
    roles: ['owner'],
    merchantId: null,
    origin,
    requestId: null,
    steppedUp: true,
  };
}

type Json = { readonly json?: boolean };

/**
 * Runs a command that performs one operation, and prints what came of it: as JSON, the very answer of the API; else by `print`.
 * @param input or a function that reads it, where it depends on what is in the database
 * @throws Problem, Refusal
 */
export async function performCommand<Input extends TObject, Output extends TSchema>(
  operation: Operation<Input, Output>,
  input: Static<Input> | ((service: Service) => Promise<Static<Input>>),
  { json }: Json,
  print: (output: Static<Output>) => void,
): Promise<void> {
  const run = async (service: Service) => {
    const given = typeof input === 'function' ? await input(service) : input;
    const output = await performed(service, operation, given);
    if (json) printJson(output);
    else print(output);
  };
  await (operation.effect === 'read' ? withService(run) : withOperator(({ service }) => run(service)));
}

/** The items that a command lists, page by page, up to a number. */
export async function listCommand<Input extends TObject, Item>(
  operation: Operation<Input>,
  filters: object,
  limit: number,
  { json }: Json,
  print: (items: Item[]) => void,
): Promise<void> {
  await withService(async (service) => {
    const items: Item[] = [];
    let cursor: string | null | undefined;
    do {
      const size = Math.min(PAGE_MAX, limit - items.length);
      const input = { ...filters, limit: size, ...(cursor && { cursor }) };
      const page = (await performed(service, operation as never, input as never)) as Page<Item>;
      items.push(...page.items);
      cursor = page.nextCursor;
    } while (cursor && items.length < limit);
    if (json) printJson(items);
    else print(items);
  });
}

const PAGE_MAX = 200;

type Page<Item> = { readonly items: Item[]; readonly nextCursor: string | null };

async function performed<Input extends TObject, Output extends TSchema>(
  service: Service,
  operation: Operation<Input, Output>,
  input: Static<Input>,
): Promise<Static<Output>> {
  const request = { service, principal: commandLine(), input, reason: actor().reason };
  return (await perform(operation as never, request)).output as Static<Output>;
}
