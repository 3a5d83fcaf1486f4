import { type Command, Option as CommanderOption } from 'commander';
import type { Service } from '../context.ts';
import type { AnyOperation } from '../operation.ts';
import { type Option, optionsOf, optionsOfAll, wordsOf } from '../options.ts';
import { Problem } from '../problem.ts';
import { decodeText, readWhole } from './file.ts';
import { withService } from './open.ts';
import { amountText, printFields, printJson, printSecret, printTable, say, wrongUsage } from './output.ts';
import { parseCount, parseValue, repeat } from './parse.ts';
import { itemsOf, LISTED_MAX, performCommand, performFile } from './perform.ts';

/**
 * The commands of a table of operations. The words, the arguments and the options follow from the
 * declarations, as do the input of the operation and the print of its answer. Nothing here knows a noun.
 */

type Options = Readonly<Record<string, unknown>> & { readonly json?: boolean };

/** A schema as far as it matters to print a value. */
type Shown = {
  readonly type?: string | readonly string[];
  readonly format?: string;
  readonly secret?: boolean;
  /** The field that stands for an object. */
  readonly 'x-text'?: string;
  readonly items?: Shown;
  readonly properties?: Readonly<Record<string, Shown>>;
};

/** What the command line knows beside the operations of a noun. */
export type Adjusting = {
  /** Returns the input with the subject by its id, if it was named in another way. */
  readonly toInput: (service: Service, input: Row) => Promise<Row>;
  /** Returns the answer as it is printed. */
  readonly toOutput: (made: Row) => Row;
};

const LISTED = '50';
const ITEM_NUMBER = /^item (\d+)/;

/**
 * Registers the commands of operations below the words of a noun. Operations with the same words are one
 * command, which performs the one whose fields are given.
 * @param description what the noun is
 * @param addOwn adds the commands that do more than perform an operation
 */
export function registerOperations(
  program: Command,
  noun: string,
  description: string,
  operations: readonly AnyOperation[],
  addOwn?: (parent: Command) => void,
  adjusting?: Adjusting,
): void {
  const parent = program.command(noun).description(description);
  addOwn?.(parent);
  const added = new Set(parent.commands.map((each) => each.name()));
  const own = operations.filter((each) => wordsOf(each)?.[0] === noun);
  for (const [line, alternatives] of Map.groupBy(own, ({ command }) => String(command))) {
    const words = line.split(' ').slice(1);
    if (added.has(words[0] ?? '')) continue;
    const command = words.reduce(
      (place, word) => place.commands.find((each) => each.name() === word) ?? place.command(word),
      parent,
    );
    const [first, second] = alternatives as [AnyOperation, AnyOperation?];
    const asFile = second?.files && !first.files ? second : undefined;
    const described = asFile ? [first] : alternatives;
    const perform: Performing = (input, given) =>
      performOperation(
        asFile && given['csv'] ? asFile : chooseFrom(described, input),
        input,
        given,
        adjusting,
      );
    addOperations(command, described, perform, asFile && [['--csv', 'print CSV']]);
  }
}

type Performing = (input: Row, given: Options) => Promise<void>;

/**
 * Gives a command the arguments and options of operations, and an action.
 * @param perform takes the input, and everything that was typed
 * @param own the options that are not fields
 */
export function addOperations(
  command: Command,
  operations: readonly AnyOperation[],
  perform: Performing,
  own: readonly (readonly [flags: string, description: string])[] = [],
): void {
  const [first] = operations as [AnyOperation];
  const options = optionsOfAll(operations);
  command.description(operations.map(({ summary }) => summary).join('; or: '));
  for (const { name, description, isArgument, isRequired, words } of options)
    if (isArgument)
      command.argument(
        isRequired ? `<${name}>` : `[${name}]`,
        [withoutDot(description), ...(isShort(words) ? [words.join(', ')] : [])].join(': '),
      );
  for (const option of options) if (!option.isArgument) addOption(command, first, option);
  if (operations.some(({ input }) => 'limit' in input.properties))
    command.option('--limit <count>', `how many, up to ${LISTED_MAX}`, LISTED);
  for (const [flags, description] of own) command.option(flags, description);
  if (first.files)
    command.option('--out <file>', 'the file (default: stdout)').option('--force', 'overwrite it');
  command.option('--json', 'print JSON').action(async (...args: unknown[]) => {
    const given = args.at(-2) as Options;
    const lines: Lines = new Map();
    const input = inputOf(options, args as string[], given, lines);
    await perform(input, given).catch(inTermsOf(options, input, lines));
  });
}

/** Returns the operation that takes exactly these fields. @throws CommandError if there is none */
function chooseFrom(operations: readonly AnyOperation[], input: object): AnyOperation {
  const [first] = operations as [AnyOperation];
  if (operations.length === 1) return first;
  const given = Object.keys(input);
  const required = (operation: AnyOperation) => optionsOf(operation).filter(({ isRequired }) => isRequired);
  const complete = operations.filter((operation) =>
    required(operation).every(({ field }) => given.includes(field)),
  );
  const foreign = (operation: AnyOperation) =>
    given.filter((field) => !optionsOf(operation).some((option) => option.field === field));
  const chosen = complete.find((operation) => foreign(operation).length === 0);
  if (chosen) return chosen;
  const [nearest] = complete.sort((one, other) => required(other).length - required(one).length);
  const words = (options: readonly Option[]) => options.map(shownOption).join(' and ');
  if (!nearest) return wrongUsage(`give ${operations.map((each) => words(required(each))).join(', or ')}`);
  const fitting = operations.find((operation) => foreign(operation).length === 0);
  if (fitting) return wrongUsage(`give ${words(required(fitting))}`);
  const all = optionsOfAll(operations);
  const others = all.filter(({ field }) => foreign(nearest).includes(field));
  return wrongUsage(`with ${words(required(nearest))}, leave out ${words(others)}`);
}

const shownOption = ({ name, isArgument }: Option) => (isArgument ? `the ${name}` : `--${name}`);

function addOption(command: Command, { method }: AnyOperation, option: Option): void {
  const { name, type, description, isRequired, isNullable, words } = option;
  const long = `--${name}`;
  const text = withoutDot(lowerFirst(description)).replace(/\bnull:/i, '"none":');
  if (option.isFromStdin) {
    command.option(long, `${text}, from standard input, so that no history of the shell keeps it`);
    return;
  }
  if (type === 'boolean') {
    const fact = text.replace(/^whether /, '');
    command.option(long, fact);
    // A change can turn something off as well as on.
    if (method === 'PATCH') command.option(`--no-${name}`, `not: ${fact}`);
    return;
  }
  const isRepeated = type === 'array' && !option.file;
  const noun = option.file ? 'file' : name.split('-').at(-1);
  const value = isShort(words) ? words.join('|') : noun;
  const hints = [
    ...(isRepeated ? ['repeatable'] : []),
    ...(option.file === 'lines' ? ['one in each line; - for standard input'] : []),
    ...(isNullable && !text.includes('"none":') ? ['"none" for no value'] : []),
    ...(words.length > 0 && !value?.includes('|') ? [words.join(', ')] : []),
    ...(option.default === undefined ? [] : [`default: ${nameOf(option, option.default)}`]),
  ];
  const added = new CommanderOption(
    `${long} <${value}>`,
    hints.length > 0 ? `${text} (${hints.join('; ')})` : text,
  );
  if (isRepeated) added.argParser(repeat as never);
  command.addOption(added.makeOptionMandatory(isRequired));
}

/** Returns a word as the command takes it. */
const nameOf = ({ names }: Option, word: unknown) =>
  Object.entries(names).find(([, each]) => each === word)?.[0] ?? String(word);

const isShort = (words: readonly string[]) => words.length > 0 && words.join('|').length < 40;
const lowerFirst = (text: string) =>
  /^[A-Z][a-z]/.test(text) ? text.charAt(0).toLowerCase() + text.slice(1) : text;
const withoutDot = (text: string) => text.replace(/\.$/, '');
const camel = (name: string) => name.replace(/-(.)/g, (_, letter: string) => letter.toUpperCase());

/** The lines of a file that holds the items of a field, by the field. */
type Lines = Map<string, readonly string[]>;

/**
 * Returns the input of an operation. Its fields are checked by its schema.
 * @param lines gets the lines of the files that were read
 */
function inputOf(options: readonly Option[], args: readonly string[], given: Options, lines: Lines): Row {
  const entries = options.flatMap((option, at) => {
    const typed = option.isArgument ? args[at] : given[camel(option.name)];
    const value = typed === undefined ? undefined : readValue(option, typed, lines);
    return value === undefined ? [] : [[option.field, toValue(option, value)] as const];
  });
  return Object.fromEntries(entries);
}

function readValue(option: Option, typed: unknown, lines: Lines): unknown {
  const { isFromStdin, file } = option;
  if (isFromStdin) return readWhole(0, shownOption(option)).toString().trim();
  if (!file) return typed;
  const content = readWhole(file === 'lines' && typed === '-' ? 0 : String(typed), shownOption(option));
  if (file === 'base64') return content.toString(file);
  const text = decodeText(content, shownOption(option));
  if (file === 'utf8') return text;
  const values = text.split(/\r?\n/).map((line) => line.trim());
  lines.set(option.field, values);
  return values.filter(Boolean);
}

function toValue(option: Option, value: unknown): unknown {
  const { name, type, words, names, isNullable, isArgument, isSigned } = option;
  if (isNullable && value === 'none') return null;
  const shown = isArgument ? name : `--${name}`;
  if (type === 'number') {
    const text = String(value);
    const amount = parseValue(isSigned ? text.replace(/^[+-]/, '') : text, shown);
    return isSigned && text.startsWith('-') ? -amount : amount;
  }
  if (type === 'integer') return parseCount(String(value), shown, 0, Number.MAX_SAFE_INTEGER);
  const toWord = (text: string) => {
    const word = words.find((each) => each.toLowerCase() === text.toLowerCase()) ?? text;
    // A text such as `constructor` is a name of every object.
    if (Object.hasOwn(names, word)) return names[word];
    if (Object.keys(names).length > 0 && !Object.values(names).includes(word))
      wrongUsage(`${shown} takes ${words.join(', ')}`);
    return word;
  };
  if (Array.isArray(value)) return [...new Set(value.map(toWord))];
  return typeof value === 'string' ? toWord(value) : value;
}

/**
 * Names the option of a wrong field, and of other fields in the message, instead of the field; and the line
 * of a wrong item that was read from a file.
 */
const inTermsOf = (options: readonly Option[], input: Row, lines: Lines) => (error: unknown) => {
  const [first] = error instanceof Problem && error.code === 'invalid' ? (error.errors ?? []) : [];
  const shown = (name: string) => {
    const option = options.find(({ field }) => field === name);
    return option && shownOption(option);
  };
  const subject = first && shown(first.field);
  if (!first || !subject) throw error;
  const message = first.message.replace(/`(\w+)`/g, (quoted, name: string) => shown(name) ?? quoted);
  const read = lines.get(first.field);
  if (!read) wrongUsage(`${subject} ${message}`);
  const items = input[first.field] as readonly string[];
  const lineOf = (_item: string, number: string) =>
    `line ${read.indexOf(items[Number(number) - 1] ?? '') + 1}`;
  const inLine = message.replace(ITEM_NUMBER, lineOf);
  wrongUsage(`${subject}${inLine === message ? '' : ':'} ${inLine}`);
};

/** Performs an operation, and prints its answer as its schema says. */
export async function performOperation(
  operation: AnyOperation,
  input: object,
  options: Options,
  adjusting?: Adjusting,
): Promise<void> {
  if (operation.files) return performFile(operation as never, input as never, options);
  const output = operation.output as Shown;
  const item = output.properties?.['nextCursor'] && output.properties['items']?.items;
  if (!item) {
    const show = (made: unknown) => {
      const shown = (adjusting?.toOutput(made as Row) ?? made) as Row;
      if (options.json) printJson(shown);
      else if (hasSecret(output)) printSecret(shownFields(output, shown), false);
      else printOne(output, shown);
      const { outcome } = operation;
      if (outcome !== undefined && shown[outcome] === false) process.exitCode = 1;
    };
    const given = adjusting ? (service: Service) => adjusting.toInput(service, input as Row) : input;
    return performCommand(operation, given as never, show);
  }
  const showList = (found: Row[]) => {
    if (options.json) printJson(found);
    else printItems(operation.columns ?? Object.keys(item.properties ?? {}), item, found);
  };
  if (operation.effect !== 'read')
    return performCommand(operation, input as never, (made) =>
      showList((made as { readonly items: Row[] }).items),
    );
  const limit =
    'limit' in operation.input.properties
      ? parseCount(String(options['limit']), '--limit', 1, LISTED_MAX)
      : undefined;
  await withService(async (service) => {
    showList(await Array.fromAsync(itemsOf<never, Row>(service, operation as never, input, limit)));
  });
}

const hasSecret = ({ properties = {} }: Shown) => Object.values(properties).some(({ secret }) => secret);

type Row = Readonly<Record<string, unknown>>;

/** Prints the fields of an answer, and then a table for each list of objects in it. */
export function printOne(schema: Shown, made: Row): void {
  const isTable = (name: string) => schema.properties?.[name]?.items?.properties !== undefined;
  const plain = Object.entries(made).filter(([name]) => !isTable(name));
  if (plain.length > 0) printFields(shownFields(schema, Object.fromEntries(plain)));
  let isFirst = plain.length === 0;
  for (const [name, rows] of Object.entries(made)) {
    const item = schema.properties?.[name]?.items;
    if (!item?.properties || !Array.isArray(rows) || rows.length === 0) continue;
    if (!isFirst) say('');
    isFirst = false;
    say(`${headOf(name)}:`);
    printItems(Object.keys(item.properties), item, rows, currencyOf(made));
  }
}

/** Prints a list: a column for each field. */
function printItems(
  columns: readonly string[],
  item: Shown,
  found: readonly Row[],
  currency?: string | undefined,
): void {
  const heads = columns.map((name) => headOf(name));
  printTable(
    heads,
    found.map((each) =>
      columns.map((name) => textOf(item.properties?.[name], each[name], currencyOf(each) ?? currency)),
    ),
    heads,
  );
}

const currencyOf = ({ currency }: Row) => (typeof currency === 'string' ? currency : undefined);

const headOf = (name: string) => name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);

function shownFields(schema: Shown, made: object, around?: string | undefined): Record<string, string> {
  const currency = currencyOf(made as Row) ?? around;
  return Object.fromEntries(
    Object.entries(made).map(([name, value]) => {
      const text = textOf(schema.properties?.[name], value, currency);
      return [headOf(name), typeof text === 'string' ? text : text.join(', ')];
    }),
  );
}

/**
 * Formats a value for people by its schema.
 * @param currency the currency of amounts
 */
function textOf(schema: Shown | undefined, value: unknown, currency: string | undefined): string | string[] {
  if (value === null || value === undefined) return '-';
  if (value instanceof Date) return value.toISOString().slice(0, 19).replace('T', ' ');
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (typeof value === 'number' && schema?.format === 'money' && currency !== undefined)
    return `${amountText(value, currency)} ${currency}`;
  if (Array.isArray(value)) {
    const texts = value.map((each) => {
      const text = textOf(schema?.items, each, currency);
      return typeof text === 'string' ? text : text.join(', ');
    });
    return texts.length > 0 ? texts : '-';
  }
  const text = schema?.['x-text'];
  if (typeof value === 'object' && text !== undefined) return String((value as Row)[text]);
  if (typeof value === 'object')
    return Object.entries(shownFields(schema ?? {}, value, currency)).map(
      ([name, text]) => `${name}: ${text}`,
    );
  return String(value);
}
