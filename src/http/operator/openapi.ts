import Type, { type TSchema } from 'typebox';
import { type AnyOperation, takesKey } from '../../operation.ts';
import { approversOf, proposersOf } from '../../operations/admit.ts';
import { optionsOf } from '../../options.ts';
import type { Door } from '../../people/sessions.ts';
import { parametersOf } from '../../schema.ts';
import { withComponents } from '../openapi.ts';
import { PREFIXES } from './desk.ts';
import { cookieName, type Route } from './person.ts';
import { PROBLEM_STATUSES, REFUSAL_STATUSES } from './problems.ts';

/**
 * Builds the OpenAPI 3.1 document of a table of operations from the table itself, so that it always matches
 * the routes.
 */

type Json = { readonly [name: string]: unknown };

export type DescribedApi = {
  readonly name: Door;
  readonly title: string;
  readonly description: string;
  readonly operations: readonly AnyOperation[];
};

const ProblemSchema = Type.Object(
  {
    type: Type.String(),
    title: Type.String(),
    status: Type.Integer(),
    code: Type.String({ description: 'A status code of the interface, or a name. Decide by this.' }),
    detail: Type.Optional(Type.String({ description: 'What is wrong and what to do, for people.' })),
    requestId: Type.String({ description: 'Quote it when you contact support.' }),
    errors: Type.Optional(
      Type.Array(
        Type.Object({
          field: Type.String(),
          rule: Type.String(),
          message: Type.String(),
          facts: Type.Optional(Type.Object({}, { description: 'What the message says, as values.' })),
        }),
      ),
    ),
  },
  { title: 'Problem' },
);

const MEANINGS: Readonly<Record<string, string>> = {
  '400': 'The request is invalid: `errors` names each field.',
  '401': 'The token or the session is missing or not valid.',
  '403': 'The roles do not permit it, or a second factor or another person is needed.',
  '404': 'What the request names does not exist.',
  '409': 'Not allowed in the current state.',
  '413': 'The body is too large.',
  '415': 'The body is not JSON in UTF-8.',
  '429': 'Too many requests: wait as many seconds as `Retry-After` says.',
  '500': 'A bug: give the operator the `requestId`.',
  '503': 'The service is overloaded, or has no database.',
};

const ALL = [...new Set([...Object.values(PROBLEM_STATUSES), ...Object.values(REFUSAL_STATUSES), 500])];
const OF_BODIES = [413, 415];

/** Every possible status of a problem, with or without a body in the request. */
export const problemsOf = (hasBody: boolean): readonly string[] =>
  [...ALL, ...(hasBody ? OF_BODIES : [])].map(String).sort();

const IDEMPOTENCY_KEY = {
  name: 'Idempotency-Key',
  in: 'header',
  description: 'The same request again under its key is performed once.',
  schema: { type: 'string', minLength: 1, maxLength: 100 },
};

export function describeApi({ name, title, description, operations }: DescribedApi): Json {
  const paths: Record<string, Record<string, object>> = {};
  for (const operation of operations) {
    const path = PREFIXES[name] + operation.path.replace(/:(\w+)/g, '{$1}');
    const described = describeOperation(operation, name === 'operator' || operation.approval?.people === 2);
    paths[path] = { ...paths[path], [operation.method.toLowerCase()]: described };
  }
  const nouns = [...new Set(operations.map((each) => nounOf(each.name)))];
  return withComponents({
    openapi: '3.1.0',
    info: { title, version: '1', description },
    servers: [{ url: '/', description: 'This server' }],
    tags: nouns.map((noun) => ({ name: noun })),
    security: [{ token: [] }, { session: [] }],
    paths,
    components: {
      securitySchemes: {
        token: { type: 'http', scheme: 'bearer', description: 'A token of `scrip token create`.' },
        session: {
          type: 'apiKey',
          in: 'cookie',
          name: cookieName('session', name),
          description: 'A session of a person.',
        },
      },
      parameters: { IdempotencyKey: IDEMPOTENCY_KEY },
      responses: Object.fromEntries(problemsOf(true).map((each) => [`Problem${each}`, problem(each)])),
    },
  });
}

/** Describes the routes of people, which accept browsers only, for the types of the console. */
export function describePeople(routes: readonly Route[]): object {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const { called, gives } of routes) {
    const [method = '', path = ''] = called.split(' ');
    const content = gives && { content: { 'application/json': { schema: gives } } };
    const responses = { [gives ? 200 : 204]: { description: 'Done.', ...content } };
    paths[path] = { ...paths[path], [method.toLowerCase()]: { operationId: called, responses } };
  }
  return { openapi: '3.1.0', info: { title: 'People', version: '1' }, paths };
}

const nounOf = (name: string) => name.split('.')[0] ?? name;

/** @param isProposed whether another person may have to approve it */
function describeOperation(operation: AnyOperation, isProposed: boolean): object {
  const { name, summary, method, path, input, status = 200, effect } = operation;
  const proposers = proposersOf(operation);
  const inPath = parametersOf(path);
  const options = new Map(optionsOf(operation).map((option) => [option.field, option]));
  /** A field, with its option on the command line. */
  const described = (field: string): TSchema => {
    const option = options.get(field);
    const named = option && { [option.isArgument ? 'x-argument' : 'x-option']: option.name };
    return { ...(input.properties[field] as TSchema), ...named };
  };
  const fields = Object.keys(input.properties).filter((field) => !inPath.includes(field));
  const required = ((input as { required?: readonly string[] }).required ?? []).filter(
    (field) => !inPath.includes(field),
  );
  const hasBody = method === 'POST' || method === 'PATCH';
  const parameters = [
    ...inPath.map((field) => parameter(field, 'path', described(field), true)),
    ...(hasBody
      ? []
      : fields.map((field) => parameter(field, 'query', described(field), required.includes(field)))),
    ...(takesKey(operation) ? [{ $ref: '#/components/parameters/IdempotencyKey' }] : []),
  ];
  const body = {
    type: 'object',
    properties: Object.fromEntries(fields.map((field) => [field, described(field)])),
    ...(required.length > 0 && { required }),
    additionalProperties: false,
  };
  return {
    operationId: name,
    tags: [nounOf(name)],
    summary,
    description: descriptionOf(operation),
    ...(operation.title !== undefined && { 'x-title': operation.title }),
    'x-roles': operation.roles,
    ...(proposers.length > 0 && { 'x-proposers': proposers }),
    ...(operation.approval?.people === 2 && { 'x-approvers': approversOf(operation) }),
    'x-risk': operation.risk,
    ...(operation.isForPeople && { 'x-for-people': true }),
    ...(operation.bodyMaxBytes !== undefined && { 'x-body-max': operation.bodyMaxBytes }),
    ...(typeof operation.command === 'string'
      ? { 'x-command': operation.command }
      : { 'x-no-command': operation.command.none }),
    ...(operation.columns && { 'x-columns': operation.columns }),
    parameters,
    ...(hasBody && {
      requestBody: {
        required: required.length > 0,
        content: { 'application/json': { schema: body, example: exampleOf(operation) } },
      },
    }),
    responses: {
      [status]: { description: 'Done.', content: contentOf(operation) },
      ...(isProposed && effect !== 'read' && status !== 202 && proposal()),
      ...Object.fromEntries(
        problemsOf(hasBody).map((each) => [each, { $ref: `#/components/responses/Problem${each}` }]),
      ),
    },
  };
}

const ANY = { schema: {} };
const BYTES = { schema: { type: 'string', format: 'binary' } };

function contentOf({ output, files }: AnyOperation): object {
  return files
    ? Object.fromEntries(files.map((type) => [type, type === 'application/json' ? ANY : BYTES]))
    : { 'application/json': { schema: output } };
}

const proposal = () => ({
  202: {
    description:
      'Proposed to another person, who has to approve it. As long as only one person could approve, it is ' +
      'performed at once instead, and the answer has `"approval": {"alone": true}`.',
    content: { 'application/json': { schema: {} } },
  },
});

const problem = (status: string) => ({
  description: MEANINGS[status] ?? 'A problem.',
  content: { 'application/problem+json': { schema: ProblemSchema } },
});

function parameter(name: string, where: 'path' | 'query', schema: TSchema, required: boolean): object {
  const { description, examples, ...rest } = schema as TSchema & {
    description?: string;
    examples?: unknown[];
  };
  return {
    name,
    in: where,
    required,
    ...(description !== undefined && { description }),
    schema: rest,
    ...(examples?.[0] !== undefined && { example: examples[0] }),
  };
}

function descriptionOf(operation: AnyOperation): string {
  const { description, roles, risk, command, audit } = operation;
  const proposers = proposersOf(operation);
  const factor = risk === 'plain' ? '' : ' People give their second factor again; a token needs `--step-up`.';
  return [
    ...(description ? [description] : []),
    `Roles: ${roles.join(', ')}.${factor}`,
    ...(operation.isForPeople ? ['For people: tokens may not call it.'] : []),
    ...(proposers.length > 0 ? [`May be proposed by: ${proposers.join(', ')}.`] : []),
    typeof command === 'string' ? `Command: \`scrip ${command}\`.` : `No command: ${command.none}.`,
    ...(audit === null ? [] : [`In the audit as \`${audit}\`.`]),
  ].join('\n\n');
}

/** Returns a body that fits the schema: the required fields with their examples, and a reason. */
export function exampleOf({ input, path }: AnyOperation): Record<string, unknown> {
  const inPath = parametersOf(path);
  const required = (input as { required?: readonly string[] }).required ?? [];
  const wanted = Object.entries(input.properties).filter(
    ([field]) => !inPath.includes(field) && required.includes(field),
  );
  return Object.fromEntries(wanted.map(([field, schema]) => [field, exampleOfSchema(schema as TSchema)]));
}

type Plain = {
  readonly examples?: readonly unknown[];
  readonly enum?: readonly unknown[];
  readonly type?: string | readonly string[];
  readonly items?: TSchema;
  readonly minimum?: number;
};

function exampleOfSchema(schema: TSchema): unknown {
  const { examples, enum: words, type, items, minimum } = schema as Plain;
  if (examples?.[0] !== undefined) return examples[0];
  if (words) return words[0];
  const [kind] = [type].flat();
  if (kind === 'array') return items ? [exampleOfSchema(items)] : [];
  if (kind === 'integer' || kind === 'number') return minimum ?? 1;
  if (kind === 'boolean') return true;
  return 'text';
}
