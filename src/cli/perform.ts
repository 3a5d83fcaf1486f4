import { pipeline } from 'node:stream/promises';
import type { Static, TObject, TSchema, TString } from 'typebox';
import type { Operator, Service } from '../context.ts';
import type { Operation } from '../operation.ts';
import { requireGlass } from '../operations/admit.ts';
import { COMMANDS_ONLY } from '../operations/commands-only.ts';
import { perform } from '../operations/perform.ts';
import { checkInput } from '../operations/validate.ts';
import type { Principal } from '../principal.ts';
import { Problem } from '../problem.ts';
import { type File, type FileSchema, Input } from '../schema.ts';
import { checkTarget, writeWhole } from './file.ts';
import { withOperator, withService } from './open.ts';
import { printJson, say, wrongUsage } from './output.ts';
import { actor } from './usage.ts';

/**
 * Returns the principal of a command: the account of the machine. Since it has the key ring and the database,
 * it has every right.
 */
function commandLine(): Principal {
  const { kind, name, origin } = actor();
  return {
    kind: kind === 'break-glass' ? kind : 'command-line',
    id: null,
    userId: null,
    name,
    roles: ['owner'],
    merchantId: null,
    origin,
    requestId: null,
    steppedUp: true,
  };
}

/** The most items that a command lists. */
export const LISTED_MAX = 10_000;

/**
 * Runs a command that performs one operation.
 * @param input the input, or a function that reads it, if it depends on the database
 * @param show shows the output
 * @throws Problem, Refusal
 */
export async function performCommand<Input extends TObject, Output extends TSchema>(
  operation: Operation<Input, Output>,
  input: Static<Input> | ((service: Service) => Promise<Static<Input>>),
  show: (output: Static<Output>) => void,
): Promise<void> {
  await opening(operation)(async (service) => {
    const given = typeof input === 'function' ? await input(service) : input;
    show(await performWith(service, operation, given));
  });
}

/** Returns how a command opens the service: a change that is interrupted waits for its outcome. */
const opening = ({ effect }: Pick<Operation, 'effect'>): typeof withService =>
  effect === 'read' ? withService : (run) => withOperator(({ service }, config) => run(service, config));

/**
 * Checks that a command without an operation may be run by one person.
 * @param command its words
 * @throws Problem `approval-required` if another person has to approve it
 */
export async function requireApproval(
  { service, actor: by }: Operator,
  command: keyof typeof COMMANDS_ONLY,
): Promise<void> {
  await requireGlass({ name: command, approval: COMMANDS_ONLY[command].approval }, service, by, {});
}

/** Lists the items of an operation page by page, up to a number; by default all of them. */
export async function* itemsOf<Input extends TObject, Item>(
  service: Service,
  operation: Listing<Input, Item>,
  filters: object,
  limit?: number,
): AsyncGenerator<Item> {
  let left = limit ?? Number.POSITIVE_INFINITY;
  let cursor: string | null | undefined;
  do {
    const size = limit === undefined ? {} : { limit: Math.min(PAGE_MAX, left) };
    const input = { ...filters, ...size, ...(cursor && { cursor }) };
    const page = (await performWith(service, operation as never, input as never)) as Page<Item>;
    yield* page.items;
    left -= page.items.length;
    cursor = page.nextCursor;
  } while (cursor && left > 0);
}

/** An operation that returns pages of items. */
type Listing<Input extends TObject, Item> = {
  readonly input: Input;
  run(caller: never, input: never): Promise<Page<Item>>;
};

const PAGE_MAX = 200;

type Page<Item> = { readonly items: Item[]; readonly nextCursor: string | null };

/** Performs an operation on an open service, as the account of the machine. */
export async function performWith<Input extends TObject, Output extends TSchema>(
  service: Service,
  operation: Operation<Input, Output>,
  input: Static<Input>,
): Promise<Static<Output>> {
  const { reason } = actor();
  // `--reason` belongs to every command, so no operation has an option for its field.
  const given = reason !== null && 'reason' in operation.input.properties ? { reason, ...input } : input;
  const request = { service, principal: commandLine(), input: given, reason };
  return (await perform(operation as never, request)).output as Static<Output>;
}

/** The types of files that a terminal cannot show: PDF and workbooks. */
const BINARY = /pdf|openxml/;

type FileOptions = { readonly out?: string; readonly force?: boolean; readonly json?: boolean };

/** Runs a command whose operation returns a file. Writes it to `--out`, or to stdout. */
export async function performFile<Input extends TObject>(
  operation: Operation<Input, typeof FileSchema>,
  input: Static<Input>,
  { out, force = false, json }: FileOptions,
): Promise<void> {
  if (force && out === undefined) wrongUsage('--force needs a file: give --out FILE');
  const checkStdout = (types: readonly string[]) => {
    if (out !== undefined) return;
    // With `--json`, stdout has one JSON document and nothing else.
    if (json && !types.includes('application/json'))
      wrongUsage('--json and the file both need stdout: give --out FILE');
    if (process.stdout.isTTY && types.every((type) => BINARY.test(type)))
      wrongUsage('a terminal cannot show this file: give --out FILE');
  };
  if (operation.files) checkStdout(operation.files);
  if (out !== undefined) await checkTarget(out, force);
  await opening(operation)(async (service) => {
    const { mediaType, content } = await performWith(service, operation, input);
    checkStdout([mediaType]);
    if (out === undefined) return pipeline(piecesOf(content), process.stdout, { end: false });
    await writeWhole(out, piecesOf(content), force);
    if (json) printJson({ file: out });
    else say(`written to ${out}`);
  });
}

export async function* piecesOf(content: File['content']): AsyncGenerator<string | Buffer> {
  if (typeof content === 'string' || Buffer.isBuffer(content)) yield content;
  else yield* content;
}

/**
 * Checks an argument or option of a command that performs no operation.
 * @param shown its name, for the message
 * @throws CommandError if the schema of the field does not allow it
 */
export function parseAs(schema: TString, text: string, shown: string): string {
  try {
    return checkInput(Input({ text: schema }), { text }).text;
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    return wrongUsage(`${shown} ${error.errors?.[0]?.message}`);
  }
}
