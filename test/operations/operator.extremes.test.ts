import assert from 'node:assert/strict';
import { test } from 'node:test';
import { exampleOf } from '../../src/http/operator/openapi.ts';
import type { AnyOperation } from '../../src/operation.ts';
import { perform } from '../../src/operations/perform.ts';
import { OPERATIONS } from '../../src/operations/table.ts';
import { Problem } from '../../src/problem.ts';
import { Refusal } from '../../src/refusal.ts';
import { compileSchema } from '../../src/validator.ts';
import { COMMAND_LINE, testService } from '../support/harness.ts';

/** An operation takes or refuses every value that its schema allows, and has no other errors. */

/** Values at the edges of what databases, clocks and texts can hold. */
const EDGES = [
  ...['0001-01-01', '9999-12-31', '0001-01-01T00:00:00+14:00', '9999-12-31T23:59:59.999Z'],
  ...['a\0b', '\ud800', '%_\\', 'e\u0301', '💶'.repeat(25), '2147483647', '999999999999999'],
  ...[-1, 0, 1e-9, 1.005, 2 ** 31 - 1, 2 ** 31, 999_999_999_999_999, null],
];

/** The inputs of an operation that its schema allows, with one of the values in a field. */
function inputsOf(operation: AnyOperation): object[] {
  const { input } = operation;
  const fields = Object.entries(input.properties as Readonly<Record<string, { examples?: unknown[] }>>);
  const inPath = fields.filter(([name]) => operation.path.includes(`:${name}`));
  const plain = {
    ...exampleOf(operation),
    ...Object.fromEntries(inPath.map(([name, { examples }]) => [name, examples?.[0]])),
  };
  const isValid = compileSchema(input);
  return fields
    .flatMap(([name]) =>
      EDGES.flatMap((edge) => [
        { ...plain, [name]: edge },
        { ...plain, [name]: [edge] },
      ]),
    )
    .filter((each) => isValid(each));
}

const named = (name: string) => OPERATIONS.find((each) => each.name === name) ?? assert.fail(name);

test('an operation takes or refuses each value that its schema allows, and has no other errors', async (t) => {
  const { service, createMerchant } = await testService(t);
  await createMerchant();
  // Its first day begins before the first year of UTC.
  await perform(named('books.set'), { service, principal: COMMAND_LINE, input: { zone: 'Africa/Cairo' } });
  let tried = 0;
  for (const operation of OPERATIONS) {
    for (const input of inputsOf(operation)) {
      tried++;
      await perform(operation, { service, principal: COMMAND_LINE, input }).catch((error) => {
        const isRefused = error instanceof Problem || error instanceof Refusal;
        assert.ok(isRefused, `${operation.name} ${JSON.stringify(input)}: ${error.stack}`);
      });
    }
  }
  assert.ok(tried > 1_000, `${tried}`);
});
