import assert from 'node:assert/strict';
import Schema from 'typebox/schema';
import { describeDialect } from '../../docs/generate/openapi.ts';
import { VARIANT_A } from '../../src/http/variant-a.ts';
import { strict } from './openapi.ts';

type Described = Record<
  string,
  { post: { requestBody: { content: { 'application/json': { schema: object } } } } }
>;

type Event = { readonly type: string; readonly timestamp?: string; readonly data: unknown };

/** Compares the body of an event with its OpenAPI schema: no field is missing, wrong or unnamed. */
export function assertDescribed({ timestamp = new Date().toISOString(), ...event }: Event): void {
  const { webhooks } = describeDialect(VARIANT_A) as unknown as { webhooks: Described };
  const { schema } =
    webhooks[event.type]?.post.requestBody.content['application/json'] ?? assert.fail(event.type);
  const validator = Schema.Compile(strict(schema));
  // Dates are texts on the wire.
  const body = JSON.parse(JSON.stringify({ type: event.type, timestamp, data: event.data }));
  const [, errors] = validator.Errors(body);
  assert.ok(validator.Check(body), `${event.type}: ${JSON.stringify(errors)}`);
}
