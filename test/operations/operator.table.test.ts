import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { before, describe, test } from 'node:test';
import { Compile } from 'typebox/compile';
import { exampleOf, problemsOf } from '../../src/http/operator/openapi.ts';
import { PEOPLE } from '../../src/http/operator/sessions.ts';
import type { AnyOperation, Fields } from '../../src/operation.ts';
import { mayPropose } from '../../src/operations/admit.ts';
import { COMMANDS_ONLY } from '../../src/operations/commands-only.ts';
import { PORTAL_OPERATIONS } from '../../src/operations/portal.ts';
import { OPERATIONS } from '../../src/operations/table.ts';
import { PORTAL_ROLES, ROLES } from '../../src/principal.ts';
import { parametersOf, VISIBLE } from '../../src/schema.ts';
import { enrolled } from '../support/browser.ts';
import { chance } from '../support/chance.ts';
import { operatorApi } from '../support/operator.api.ts';
import { readProgram } from '../support/program.ts';

const api = operatorApi();
let merchantId: number;

type Described = {
  readonly description?: string;
  readonly title?: string;
  readonly enum?: readonly unknown[];
};

before(async () => {
  merchantId = (await api.testService.createMerchant()).id;
});

const APIS = [
  { prefix: '/operator/v1', operations: OPERATIONS, roles: ROLES },
  { prefix: '/portal/v1', operations: PORTAL_OPERATIONS, roles: PORTAL_ROLES },
] as const;

/** The path of an operation, with its parameters replaced by the given values or their examples. */
function pathOf({ path, input }: AnyOperation, given: Fields = {}): string {
  return parametersOf(path).reduce((text, name) => {
    const { examples } = input.properties[name] as { examples?: unknown[] };
    return text.replace(`:${name}`, encodeURIComponent(String(given[name] ?? examples?.[0] ?? 'none')));
  }, path);
}

function call(prefix: string, operation: AnyOperation, body: unknown, token: string, given: Fields = {}) {
  const hasBody = operation.method === 'POST' || operation.method === 'PATCH';
  const query = hasBody
    ? ''
    : `?${new URLSearchParams(Object.entries((body ?? {}) as object).map(([name, value]): [string, string] => [name, String(value)]))}`;
  const url = prefix + pathOf(operation, given) + query;
  return api.call(operation.method, url, hasBody ? body : undefined, { authorization: `Bearer ${token}` });
}

describe('the table of operations', () => {
  test('has a route, a command or a reason, roles and an audit action for each', async () => {
    const commands = await readProgram();
    for (const { operations } of APIS) {
      assert.equal(new Set(operations.map(({ name, path }) => `${name} ${path}`)).size, operations.length);
      assert.equal(
        new Set(operations.map(({ method, path }) => `${method} ${path}`)).size,
        operations.length,
      );
      for (const { name, summary, command, roles, effect, audit, path, input } of operations) {
        assert.match(name, /^[a-z-]+\.[a-z0-9-]+$/);
        assert.ok(summary.length > 5 && !summary.endsWith('.'), `${name}: ${summary}`);
        assert.ok(roles.length > 0, name);
        if (typeof command === 'string') assert.ok(commands.has(command), `${name}: scrip ${command}`);
        else assert.ok(command.none.length > 20, name);
        if (effect === 'read') assert.equal(audit, null, name);
        for (const parameter of parametersOf(path)) assert.ok(parameter in input.properties, name);
      }
    }
  });

  test('says of each change why one person is enough, or why two are needed', () => {
    const commands = Object.entries(COMMANDS_ONLY).map(([name, only]) => ({
      name,
      effect: 'outside',
      ...only,
    }));
    for (const { name, effect, approval } of [...OPERATIONS, ...PORTAL_OPERATIONS, ...commands]) {
      if (effect === 'read') assert.equal(approval, null, name);
      if (approval === null) continue;
      assert.match(approval.why, /^[A-Z].{15,}\.$/, name);
      const conditions = approval.people === 2 ? (approval.when ?? []) : [];
      for (const { text } of conditions) assert.match(text, /^[a-z].{15,}[^.]$/, name);
    }
    const undecided = OPERATIONS.filter(({ effect, approval }) => effect !== 'read' && approval === null);
    assert.deepEqual(undecided, []);
  });

  test('covers every command, or gives the reason why not', async () => {
    const covered = new Set(
      OPERATIONS.flatMap(({ command }) => (typeof command === 'string' ? [command] : [])),
    );
    const missing = [...(await readProgram()).keys()].filter((each) => !covered.has(each));
    assert.deepEqual(missing.sort(), Object.keys(COMMANDS_ONLY).sort());
  });

  test('has exactly the operations of the OpenAPI documents', async () => {
    for (const [name, { operations }] of [
      ['operator', APIS[0]],
      ['portal', APIS[1]],
    ] as const) {
      const document = (await api.call('GET', `/docs/${name}/openapi.json`)).body;
      const described = Object.values(
        document.paths as Record<string, Record<string, { operationId: string; 'x-proposers'?: string[] }>>,
      ).flatMap((methods) => Object.values(methods));
      assert.deepEqual(
        described.map(({ operationId }) => operationId).sort(),
        operations.map((each) => each.name).sort(),
      );
      for (const { operationId, 'x-proposers': proposers = [] } of described)
        for (const role of ROLES) {
          const may = operations.some(
            (each) => each.name === operationId && mayPropose(each, { roles: [role], merchantId: null }),
          );
          assert.equal(proposers.includes(role), may, `${role} ${operationId}`);
        }
    }
  });
});

test('the description of a field says what it is, before what it is when it is left out', () => {
  const wrong = APIS.flatMap(({ operations }) => operations).flatMap(({ name, input }) =>
    Object.entries(input.properties as Record<string, Described>)
      .filter(([, { description = '', title, enum: words }]) =>
        description === '' ? (words ?? title) === undefined : /^(left out|null):/i.test(description),
      )
      .map(([field, { description }]) => `${name} ${field}: ${description}`),
  );
  assert.deepEqual(wrong, []);
});

test('the OpenAPI document of the portal has its own cookie, and says what its own people approve', async () => {
  const { body: document } = await api.call('GET', '/docs/portal/openapi.json');
  assert.equal(document.components.securitySchemes.session.name, '__Host-scrip_portal');
  type Described = { operationId: string; 'x-risk': string; responses: object };
  const approved = Object.values(document.paths as Record<string, Record<string, Described>>)
    .flatMap((methods) => Object.values(methods))
    .filter(({ 'x-risk': risk, responses }) => risk === 'four-eyes' || '202' in responses);
  assert.deepEqual(
    approved.map(({ operationId }) => operationId),
    ['batch.release', 'merchant.set-download-approval'],
  );
});

describe('the reference page of the operator API', () => {
  const read = () => readFile(new URL('../../docs/reference/operator-api.md', import.meta.url), 'utf8');

  test('names every role', async () => {
    const page = await read();
    for (const word of [...ROLES, ...PORTAL_ROLES]) assert.ok(page.includes(`\`${word}\``), word);
  });

  test('names every request of people, with the fields that it takes', async () => {
    const [, section = ''] = (await read()).split('\n## People and sessions\n');
    const rows = section.split('\n## ')[0]?.split('\n') ?? [];
    for (const { called, takes } of PEOPLE) {
      const request = called.replace(/:(\w+)/, '{$1}');
      const own = rows.filter((row) => row.includes(`\`${request}\``)).join('\n');
      for (const word of [request, ...Object.keys(takes.properties)])
        assert.ok(own.includes(`\`${word}\``), `${request}: ${word}`);
    }
  });
});

describe('a role', () => {
  for (const { prefix, operations, roles } of APIS) {
    test(`may call exactly the operations below ${prefix} that the table allows`, async () => {
      const owner = prefix === '/operator/v1' ? undefined : merchantId;
      const checkRole = async (role: (typeof roles)[number]) => {
        const token = await api.token([role], owner);
        for (const operation of operations) {
          // An unknown field is refused as invalid when the role may call, and has no effect.
          const { status, body } = await call(prefix, operation, { nothing: 1 }, token);
          const may =
            !operation.isForPeople &&
            (operation.roles.includes(role) ||
              mayPropose(operation, { roles: [role], merchantId: owner ?? null }));
          const expected = may ? [400, 'invalid'] : [403, 'forbidden'];
          assert.deepEqual([status, body.code], expected, `${role} ${operation.name}`);
        }
      };
      await Promise.all(roles.map(checkRole));
    });
  }
});

/** An id in the form of one, which is higher than an integer of the database. */
const BEYOND = '9999999999';

/** Values that are invalid for some fields, and valid for others. */
const ODD: readonly unknown[] = [
  ...['', ' ', 'x', '1', '0', '-1', '\u0000', '\u202e', '999999999999999999999', BEYOND],
  ...['a'.repeat(3_000), 'NaN'],
  ...[
    '2030-02-30',
    '2030-01-31',
    '0000-00-00',
    '9999-12-31T23:59:59Z',
    "'; drop table audit --",
    '../..',
    '%00',
  ],
  ...[0, -1, 1, 1.5, 1e300, 9_007_199_254_740_991, true, false, null],
  ...[[], [1], ['x'], [null], {}, { a: 1 }, ['10000000064', '10000000064']],
];

const ROUNDS = 12;
/** How many requests are sent at once. */
const LANES = 4;

type Asked = { readonly operation: AnyOperation; readonly body: object; readonly given: Fields };

/** Requests of each operation with its example, first as it is, then with odd values. */
function requestsOf(operations: readonly AnyOperation[]): Asked[] {
  const next = chance(7);
  const pick = <T>(list: readonly T[]) => list[Math.floor(next() * list.length)] as T;
  return operations.flatMap((operation) => {
    const fields = Object.keys(operation.input.properties);
    const inPath = parametersOf(operation.path);
    return Array.from({ length: ROUNDS + 1 }, (_, round) => {
      const given = round === 0 || fields.length === 0 ? {} : { [pick(fields)]: pick(ODD) };
      const all = Object.entries({ ...exampleOf(operation), ...given });
      return { operation, given, body: Object.fromEntries(all.filter(([field]) => !inPath.includes(field))) };
    });
  });
}

/** Checks that the OpenAPI document of an operation describes an answer. */
function judge(
  { operation, given }: Asked,
  { status, headers, body }: Pick<Awaited<ReturnType<typeof call>>, 'status' | 'headers' | 'body'>,
) {
  const message = `${operation.name} ${JSON.stringify(given)} ${JSON.stringify(body)}`;
  const type = headers.get('content-type') ?? '';
  assert.ok(status < 500, message);
  if (status >= 300) {
    const hasBody = operation.method === 'POST' || operation.method === 'PATCH';
    assert.ok(problemsOf(hasBody).includes(String(status)) || status === 405, message);
    assert.match(type, /^application\/problem\+json/, message);
    assert.equal(body.requestId, headers.get('x-request-id'));
    if (body.code === 'invalid') assert.ok(body.errors.length > 0, message);
  } else if (operation.files) {
    assert.ok(operation.files.includes(type.split(';')[0] ?? ''), message);
    assert.match(headers.get('content-disposition') ?? '', /^attachment; filename="/, message);
  } else if (status !== 202 || operation.status === 202) {
    const check = Compile(operation.output);
    assert.ok(check.Check(body), `${message} ${JSON.stringify(check.Errors(body))}`);
  }
}

describe('a request with random values', () => {
  test('is answered so, too, where its body is of another type or too large', async () => {
    const { body } = await api.call('GET', '/docs/operator/openapi.json');
    for (const [name, type, status] of [
      ['x', 'text/plain', 415],
      ['x'.repeat(70_000), 'application/json', 413],
    ] as const) {
      const answer = await api.post('/merchants', { name }, { 'content-type': type });
      assert.equal(answer.status, status);
      assert.ok(body.paths['/operator/v1/merchants'].post.responses[status], String(status));
    }
  });

  for (const { prefix, operations, roles } of APIS) {
    test(`below ${prefix} is answered as the OpenAPI document says, and never with a 500`, async () => {
      const token = await api.token(roles, prefix === '/operator/v1' ? undefined : merchantId);
      const requests = requestsOf(operations).values();
      const lane = async () => {
        for (const asked of requests)
          judge(asked, await call(prefix, asked.operation, asked.body, token, asked.given));
      };
      await Promise.all(Array.from({ length: LANES }, lane));
    });

    test(`below ${prefix} has no id beyond those of the database`, async () => {
      const token = await api.token(roles, prefix === '/operator/v1' ? undefined : merchantId);
      const takes = ({ input }: AnyOperation, field: string, value: unknown) => {
        const schema = input.properties[field] as { pattern?: string; items?: { pattern?: string } };
        const pattern = schema.pattern ?? schema.items?.pattern;
        return pattern !== undefined && pattern !== VISIBLE && Compile(schema as never).Check(value);
      };
      for (const operation of operations)
        for (const field of Object.keys(operation.input.properties))
          for (const value of [BEYOND, [BEYOND]].filter((each) => takes(operation, field, each))) {
            const given = { [field]: value };
            const inPath = parametersOf(operation.path);
            const body = Object.fromEntries(
              Object.entries({ ...exampleOf(operation), ...given }).filter(
                ([name]) => !inPath.includes(name),
              ),
            );
            judge({ operation, given, body }, await call(prefix, operation, body, token, given));
          }
    });
  }
});

// Below the other tests: with people, tokens are no longer made by the command line alone.
describe('a request of a person with random values', () => {
  for (const { prefix, operations } of APIS) {
    test(`below ${prefix} is answered so, too, where no token is accepted`, async () => {
      for (const operation of operations.filter(({ isForPeople }) => isForPeople)) {
        // A person of its own for each, since some of them end the session.
        const email = `${operation.name}@example.com`;
        const of = prefix === '/operator/v1' ? {} : { merchantId };
        const { browser } = await enrolled(api.testService, { email, roles: ['owner'], ...of });
        for (const asked of requestsOf([operation])) {
          const url = pathOf(operation, asked.given);
          judge(asked, await browser.send(operation.method, url, asked.body));
        }
      }
    });
  }
});
