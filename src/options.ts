import type { TObject, TSchema } from 'typebox';
import type { AnyOperation } from './operation.ts';
import { parametersOf } from './schema.ts';

/**
 * The command of an operation: its words, its arguments and its options follow from the declaration. The
 * command line makes the commands from it, and the OpenAPI documents describe it to the console.
 */

/** What the schema of a field can say for its option. */
type FieldSchema = {
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly items?: FieldSchema;
  readonly description?: string;
  readonly default?: unknown;
  readonly examples?: readonly unknown[];
  /**
   * The name of the option without dashes, if it does not follow from the name of the field. A parameter of
   * the path with it is an option instead of an argument.
   */
  readonly option?: string;
  /** Whether the field is an argument instead of an option. */
  readonly positional?: true;
  /** Whether the command reads the field from standard input: a secret has no place in a command line. */
  readonly stdin?: true;
  /** How the command reads the field from a file; `lines`: a value in each line, `-` is standard input. */
  readonly file?: 'utf8' | 'base64' | 'lines';
  /** Names of words that a shell would interpret, such as `comma` for `,`. */
  readonly names?: Readonly<Record<string, string>>;
  readonly minimum?: number;
};

export type Option = {
  readonly field: string;
  /** Such as `merchant` for `--merchant`, or the name of an argument. */
  readonly name: string;
  readonly isArgument: boolean;
  readonly isRequired: boolean;
  readonly isNullable: boolean;
  /** Whether the option has no value of its own: it is read from standard input. */
  readonly isFromStdin: boolean;
  /** How the file is read whose path is the value; undefined: the value itself is meant. */
  readonly file: 'utf8' | 'base64' | 'lines' | undefined;
  /** Whether a number can be negative. */
  readonly isSigned: boolean;
  /** string, number, integer, boolean, array or object. */
  readonly type: string;
  readonly words: readonly string[];
  /** The value that a request has which leaves the field out. */
  readonly default: unknown;
  /** The words behind the names that the command takes for them. */
  readonly names: Readonly<Record<string, string>>;
  readonly description: string;
};

/** No options of their own: `--reason` belongs to every command, and pages follow by themselves. */
const COMMON = ['reason', 'cursor', 'limit'];

const kebab = (name: string) => name.replace(/[A-Z0-9]+/g, (part) => `-${part.toLowerCase()}`);
const typesOf = ({ type = 'string' }: FieldSchema) => [type].flat();
const singular = (name: string) => name.replace(/ies$/, 'y').replace(/s$/, '');

/** `merchantId` is the option `--merchant`, `expiresAt` is `--expires`, an item of `scopes` is `--scope`. */
function nameOf(field: string, schema: FieldSchema): string {
  if (schema.option !== undefined) return schema.option;
  const plain = field.replace(/(Id|Number|At|Minutes)$/, '') || field;
  return kebab(typesOf(schema)[0] === 'array' ? singular(plain) : plain);
}

/** Returns the words of the command of an operation, or undefined if it has none. */
export function wordsOf({ command }: Pick<AnyOperation, 'command'>): readonly string[] | undefined {
  return typeof command === 'string' ? command.split(' ') : undefined;
}

/** Returns the arguments and the options of an operation: first the arguments, in their order. */
export function optionsOf({ input, path }: { readonly input: TObject; readonly path: string }): Option[] {
  const inPath = parametersOf(path);
  const required = (input as { required?: readonly string[] }).required ?? [];
  const schemas = input.properties as Record<string, TSchema> as Record<string, FieldSchema>;
  const isArgument = (field: string) => {
    const { option, positional } = schemas[field] ?? {};
    return positional === true || (inPath.includes(field) && option === undefined);
  };
  // A list of objects cannot be typed.
  const isTyped = (field: string) => schemas[field]?.items?.type !== 'object' && !COMMON.includes(field);
  const fields = Object.keys(schemas).filter((field) => isTyped(field) || inPath.includes(field));
  const first = inPath.filter(isArgument);
  const others = fields.filter((field) => isArgument(field) && !inPath.includes(field));
  const options = fields.filter((field) => !isArgument(field));
  return [...first, ...others, ...options].map((field) => {
    const schema = schemas[field] ?? {};
    const types = typesOf(schema);
    const { names = {} } = schema;
    const words = schema.names ? Object.keys(names) : ((schema.items ?? schema).enum ?? []);
    return {
      field,
      name: schema.stdin ? `${nameOf(field, schema)}-stdin` : nameOf(field, schema),
      isArgument: isArgument(field),
      isRequired: required.includes(field),
      isNullable: types.includes('null'),
      isFromStdin: schema.stdin === true,
      file: schema.file,
      isSigned: (schema.minimum ?? 0) < 0,
      type: types.find((type) => type !== 'null') ?? 'string',
      words: words.filter((word) => word !== null).map(String),
      default: schema.default,
      names,
      description: schema.description ?? '',
    };
  });
}

/**
 * Returns the options of a command that performs one of several operations: one that an operation does not
 * have is not required.
 */
export function optionsOfAll(operations: readonly AnyOperation[]): readonly Option[] {
  const lists = operations.map(optionsOf);
  const joined = [...Map.groupBy(lists.flat(), ({ field }) => field).values()].map((each) => ({
    ...(each[0] as Option),
    isRequired: each.length === lists.length && each.every(({ isRequired }) => isRequired),
  }));
  return joined.sort((one, other) => Number(other.isArgument) - Number(one.isArgument));
}
