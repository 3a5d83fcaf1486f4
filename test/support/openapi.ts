import { dereference } from '@scalar/openapi-parser';

/** A schema that allows no unnamed field in any object. */
export function strict(schema: unknown): object {
  if (Array.isArray(schema)) return schema.map(strict);
  if (schema === null || typeof schema !== 'object') return schema as object;
  const closed = Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, strict(value)]));
  return 'properties' in schema ? { ...closed, additionalProperties: false } : closed;
}

/** Returns an OpenAPI document with the components in the places that refer to them. */
export async function dereferenced<Document>(document: unknown): Promise<Document> {
  const { schema, errors } = await dereference(structuredClone(document) as object as never);
  if (!schema || errors?.length) throw new Error(JSON.stringify(errors));
  return schema as Document;
}
