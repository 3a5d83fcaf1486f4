import type { Figure } from './figures.ts';
import type { Catalogue } from './i18n/en.ts';

/** The operations of the service, as its OpenAPI document describes them. */

/** What is offered to people of the operator, and to those of a merchant. */
type Choices = Readonly<Record<'operator' | 'merchant', readonly string[]>>;

/**
 * A field of an operation's input, from the OpenAPI document of the service. The build leaves out values that
 * are false, zero or empty (../generate.ts).
 */
export type Field = {
  readonly name: string;
  readonly in: 'path' | 'query' | 'body';
  readonly required?: boolean;
  readonly type: string;
  readonly nullable?: boolean;
  readonly options: readonly string[];
  /** Options that depend on whose thing it is. */
  readonly choices?: Choices | undefined;
  /** The roles that may send the field; empty: those of the operation. */
  readonly roles: readonly string[];
  /** The build keeps it apart, for forms alone (../generate.ts). */
  readonly description?: string;
  /** The build leaves it out. */
  readonly example?: string;
  /** The value that a request has which leaves the field out. */
  readonly default?: string | number | boolean;
  /** What the value is, such as `merchant` or `day`; empty: what its type says. */
  readonly format?: string;
  /** The greatest length of a text. */
  readonly maxLength?: number;
  /** How the file is read whose content is the value; undefined: the value itself is typed. */
  readonly file: string | undefined;
  /** The option of the command line without dashes; null for an argument, and for a field of no command. */
  readonly option: string | null;
  readonly isArgument?: boolean;
  /** The part of a long form in which the field stands. */
  readonly section: keyof Catalogue['sections'] | undefined;
  /** Whether that part is opened on demand while it has no values. */
  readonly isFolded?: boolean;
  /** Whether a form asks for it. */
  readonly isAsked?: boolean;
};

export type Operation = {
  readonly name: string;
  /** The build keeps it apart, for forms and the search (../generate.ts). */
  readonly summary?: string;
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly command: string | null;
  readonly roles: readonly string[];
  /** Roles that may propose the operation but not perform it (docs/how-to/people.md, "Four eyes"). */
  readonly proposers: readonly string[];
  /** Roles that may approve it. */
  readonly approvers: readonly string[];
  readonly fields: readonly Field[];
  /** The fields of an item that a list shows, in their order. */
  readonly columns: readonly string[];
  /** The figures of the answer by their path, such as `lines.amount` or `items.balance`. */
  readonly figures: Readonly<Record<string, Figure>>;
};

/** How the value of a field with this name is shown, by the answers. The build leaves out false values. */
export type Shape = {
  readonly isKnown: boolean;
  readonly isMoney?: boolean;
  readonly isList?: boolean;
  /** The value is shown once. */
  readonly isSecret?: boolean;
  readonly format?: string;
  /** The words of a closed list. */
  readonly words: readonly string[];
};

/** An API, as its document describes it. */
export type Api = {
  readonly operations: ReadonlyMap<string, Operation>;
  readonly shapes: ReadonlyMap<string, Shape>;
};

type Schema = {
  type?: string | string[];
  enum?: unknown[];
  anyOf?: Schema[];
  const?: unknown;
  description?: string | undefined;
  examples?: unknown[];
  default?: string | number | boolean;
  items?: Schema;
  properties?: Record<string, Schema>;
  required?: string[];
  $ref?: string;
  format?: string;
  maxLength?: number;
  secret?: boolean;
  file?: string;
  'x-format'?: string;
  'x-entries'?: Figure;
  'x-option'?: string;
  'x-argument'?: string;
  'x-asked'?: boolean;
  'x-section'?: keyof Catalogue['sections'];
  'x-folded'?: boolean;
  'x-choices'?: Choices;
  'x-roles'?: readonly string[];
  stdin?: boolean;
};
type Described = {
  operationId?: string;
  summary?: string;
  parameters?: (
    | {
        name: string;
        in: 'path' | 'query' | 'header';
        required?: boolean;
        description?: string;
        schema: Schema;
      }
    | { $ref: string }
  )[];
  requestBody?: { content: Record<string, { schema: Schema }> };
  responses?: Record<string, { content?: Record<string, { schema: Schema }> }>;
  'x-columns'?: string[];
  'x-command'?: string;
  'x-roles'?: string[];
  'x-proposers'?: string[];
  'x-approvers'?: string[];
};
type Document = {
  paths: Record<string, Record<string, Described>>;
  components?: { schemas?: Record<string, Schema> };
};

export function readDocument({ paths, components = {} }: Document, door: 'operator' | 'portal'): Api {
  const { schemas = {} } = components;
  const all = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, described]) => ({ path, method, described })),
  );
  const found = all.map(({ path, method, described }) =>
    readOperation(path.replace(`/${door}/v1`, ''), method, described, schemas),
  );
  const shapes = new Map<string, Shape>();
  for (const schema of [
    ...Object.values(schemas),
    ...all.flatMap(({ described }) => answerOf(described) ?? []),
  ])
    addShapes(schema, shapes);
  return { operations: new Map(found.map((operation) => [operation.name, operation])), shapes };
}

function answerOf({ responses = {} }: Described): Schema | undefined {
  const { content = {} } = responses['200'] ?? responses['201'] ?? {};
  return content['application/json']?.schema;
}

/**
 * A field of one name has one meaning, so all answers that have it say how it is shown. An `id` is of whatever
 * has it, and shown as it is.
 */
function addShapes({ properties = {}, items, anyOf = [] }: Schema, shapes: Map<string, Shape>): void {
  for (const each of [...anyOf, ...(items ? [items] : [])]) addShapes(each, shapes);
  for (const [name, schema] of Object.entries(properties)) {
    const {
      format = '',
      words = [],
      isMoney = false,
      isList = false,
      isSecret = false,
    } = shapes.get(name) ?? {};
    shapes.set(name, {
      isKnown: true,
      isMoney: isMoney || schema.format === 'money',
      isList: isList || [schema.type].flat().includes('array'),
      isSecret: isSecret || schema.secret === true,
      format: name === 'id' ? '' : (schema['x-format'] ?? format),
      words: [...new Set([...words, ...optionsOf(schema)])],
    });
    addShapes(schema, shapes);
  }
}

function optionsOf(schema: Schema): string[] {
  const all = [schema, ...(schema.anyOf ?? []), ...[schema.items ?? []].flat()];
  const options = all.flatMap((each) => each.enum ?? (each.const === undefined ? [] : [each.const]));
  return options.filter((option) => option !== null).map(String);
}

/** The fields of an item of a list, without what is itself a list or an object. */
function columnsOf(described: Described, schemas: Record<string, Schema>): string[] {
  const { properties: fields = {} } = resolved(answerOf(described) ?? {}, schemas);
  const item = resolved(fields['items']?.items ?? {}, schemas);
  const isPlain = ({ type }: Schema) => ![type].flat().some((each) => each === 'object' || each === 'array');
  return Object.entries(item.properties ?? {}).flatMap(([name, each]) => (isPlain(each) ? [name] : []));
}

/** A schema that several answers share is named in them. */
const resolved = (schema: Schema, schemas: Record<string, Schema>): Schema =>
  schema.$ref ? (schemas[schema.$ref.split('/').at(-1) ?? ''] ?? {}) : schema;

/** The figures of an answer, by their path. */
function figuresOf(of: Schema, schemas: Record<string, Schema>, path = ''): [string, Figure][] {
  const { properties = {} } = resolved(of, schemas);
  return Object.entries(properties).flatMap(([name, schema]) => {
    const at = path + name;
    const entries = schema['x-entries'];
    return [
      ...(entries ? [[at, entries] as [string, Figure]] : []),
      ...figuresOf(schema.items ?? schema, schemas, `${at}.`),
    ];
  });
}

function readOperation(
  path: string,
  method: string,
  described: Described,
  schemas: Record<string, Schema>,
): Operation {
  const body = Object.values(described.requestBody?.content ?? {})[0]?.schema;
  // Headers, such as the idempotency key, are not typed by the user. The shared ones are references.
  const given = (described.parameters ?? []).flatMap((parameter) => {
    if ('$ref' in parameter || parameter.in === 'header') return [];
    const { name, in: place, required = false, description, schema } = parameter;
    return [readField(name, place, required, { ...schema, description: description ?? schema.description })];
  });
  const sent = Object.entries(body?.properties ?? {}).map(([name, schema]) =>
    readField(name, 'body', body?.required?.includes(name) ?? false, schema),
  );
  return {
    name: described.operationId ?? `${method} ${path}`,
    // A command says which code a refusal has.
    summary: (described.summary ?? '').replace(/ \(\d\d\)|`/g, ''),
    method: method.toUpperCase() as Operation['method'],
    path,
    command: described['x-command'] ?? null,
    roles: described['x-roles'] ?? [],
    proposers: described['x-proposers'] ?? [],
    approvers: described['x-approvers'] ?? described['x-roles'] ?? [],
    fields: [...given, ...sent],
    columns: described['x-columns'] ?? columnsOf(described, schemas),
    figures: Object.fromEntries(figuresOf(answerOf(described) ?? {}, schemas)),
  };
}

function readField(name: string, place: Field['in'], required: boolean, schema: Schema): Field {
  const types = [schema, ...(schema.anyOf ?? [])].flatMap(({ type = [] }) => type);
  return {
    name,
    in: place,
    required,
    // A secret is not shown in a command: its option has no value.
    type: schema.stdin ? 'secret' : (types.find((type) => type !== 'null') ?? 'string'),
    nullable: types.includes('null'),
    options: optionsOf(schema),
    choices: schema['x-choices'],
    roles: schema['x-roles'] ?? [],
    description: schema.description ?? '',
    example: String(schema.examples?.[0] ?? ''),
    ...(schema.default !== undefined && { default: schema.default }),
    format: schema['x-format'] ?? '',
    maxLength: schema.maxLength ?? 0,
    file: schema.file,
    option: schema['x-option'] ?? null,
    isArgument: schema['x-argument'] !== undefined,
    isAsked: schema['x-asked'] ?? true,
    section: schema['x-section'],
    isFolded: schema['x-folded'] ?? false,
  };
}
