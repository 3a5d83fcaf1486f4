import { useQuery } from '@tanstack/react-query';
import { type Door, send } from './api.ts';

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
  readonly risk: 'plain' | 'step-up' | 'four-eyes';
  readonly fields: readonly Field[];
};

type Schema = {
  type?: string | string[];
  enum?: unknown[];
  anyOf?: Schema[];
  const?: unknown;
  description?: string;
  examples?: unknown[];
  items?: Schema;
  properties?: Record<string, Schema>;
  required?: string[];
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
  'x-risk'?: Operation['risk'];
};
type Document = { paths: Record<string, Record<string, Described>> };

/** The operations that the service offers. Pages, actions and forms are derived from them. */
export function useOperations(door: Door): ReadonlyMap<string, Operation> | undefined {
  const { data } = useQuery({
    queryKey: ['operations', door],
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: async () => readDocument(await (await fetch(`/docs/${door}/openapi.json`)).json(), door),
  });
  return data;
}

/**
 * Performs an operation. Empty lines of a list are left out.
 * @throws ApiProblem
 */
export function perform(
  { method, path, fields }: Operation,
  input: Readonly<Record<string, unknown>>,
  idempotencyKey: string,
): Promise<Record<string, unknown>> {
  const target = path.replace(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(String(input[name] ?? '')),
  );
  const clean = (value: unknown) => (Array.isArray(value) ? value.filter((each) => each !== '') : value);
  // A field that the service requires may be left empty if it may be null.
  const inBody = fields.filter(
    ({ in: place, name, required, nullable }) =>
      place === 'body' && (input[name] !== undefined || (required && nullable)),
  );
  const body = Object.fromEntries(inBody.map(({ name }) => [name, clean(input[name] ?? null)]));
  return send(method === 'GET' ? 'POST' : method, target, { body, idempotencyKey });
}

/** Whether the service lists something page by page. Short lists come in one answer. */
export function comesInPages(operations: ReadonlyMap<string, Operation> | undefined, path: string): boolean {
  const listing = [...(operations?.values() ?? [])].find(
    (each) => each.method === 'GET' && new RegExp(`^${each.path.replace(/\{\w+\}/g, '[^/]+')}$`).test(path),
  );
  return listing === undefined || listing.fields.some(({ name }) => name === 'limit');
}

function readDocument({ paths }: Document, door: Door): Map<string, Operation> {
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
    summary: described.summary ?? '',
    method: method.toUpperCase() as Operation['method'],
    path,
    command: described['x-command'] ?? null,
    roles: described['x-roles'] ?? [],
    proposers: described['x-proposers'] ?? [],
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
    type: types.find((type) => type !== 'null') ?? 'string',
    nullable: types.includes('null'),
    options: options.filter((option) => option !== null).map(String),
    description: schema.description ?? '',
    example: String(schema.examples?.[0] ?? ''),
  };
}
