/** The operations of the service, as its OpenAPI document describes them. */

/** A field of an operation's input, from the OpenAPI document of the service. */
export type Field = {
  readonly name: string;
  readonly in: 'path' | 'query' | 'body';
  readonly required: boolean;
  readonly type: string;
  readonly nullable: boolean;
  readonly options: readonly string[];
  readonly description: string;
  readonly example: string;
  /** The option of the command line without dashes; null for an argument, and for a field of no command. */
  readonly option: string | null;
  readonly isArgument: boolean;
};

export type Operation = {
  readonly name: string;
  readonly summary: string;
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly command: string | null;
  readonly roles: readonly string[];
  /** Roles that may propose the operation but not perform it (docs/how-to/people.md, "Four eyes"). */
  readonly proposers: readonly string[];
  /** Roles that may approve it. */
  readonly approvers: readonly string[];
  readonly risk: 'plain' | 'step-up' | 'four-eyes';
  readonly fields: readonly Field[];
};

type Schema = {
  type?: string | string[];
  enum?: unknown[];
  anyOf?: Schema[];
  const?: unknown;
  description?: string | undefined;
  examples?: unknown[];
  items?: Schema;
  properties?: Record<string, Schema>;
  required?: string[];
  'x-option'?: string;
  'x-argument'?: string;
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
  'x-command'?: string;
  'x-roles'?: string[];
  'x-proposers'?: string[];
  'x-approvers'?: string[];
  'x-risk'?: Operation['risk'];
};
type Document = { paths: Record<string, Record<string, Described>> };

export function readDocument({ paths }: Document, door: 'operator' | 'portal'): Map<string, Operation> {
  const found = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, described]) =>
      readOperation(path.replace(`/${door}/v1`, ''), method, described),
    ),
  );
  return new Map(found.map((operation) => [operation.name, operation]));
}

function readOperation(path: string, method: string, described: Described): Operation {
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
    risk: described['x-risk'] ?? 'plain',
    fields: [...given, ...sent],
  };
}

function readField(name: string, place: Field['in'], required: boolean, schema: Schema): Field {
  const types = [schema, ...(schema.anyOf ?? [])].flatMap(({ type = [] }) => type);
  const options = [schema, ...(schema.anyOf ?? []), ...[schema.items ?? []].flat()].flatMap(
    (each) => each.enum ?? (each.const === undefined ? [] : [each.const]),
  );
  return {
    name,
    in: place,
    required,
    // A secret is not shown in a command: its option has no value.
    type: schema.stdin ? 'secret' : (types.find((type) => type !== 'null') ?? 'string'),
    nullable: types.includes('null'),
    options: options.filter((option) => option !== null).map(String),
    description: schema.description ?? '',
    example: String(schema.examples?.[0] ?? ''),
    option: schema['x-option'] ?? null,
    isArgument: schema['x-argument'] !== undefined,
  };
}
