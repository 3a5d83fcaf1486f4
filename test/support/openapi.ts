import { dereference } from '@scalar/openapi-parser';

/** Returns an OpenAPI document with the components in the places that refer to them. */
export async function dereferenced<Document>(document: unknown): Promise<Document> {
  const { schema, errors } = await dereference(structuredClone(document) as object as never);
  if (!schema || errors?.length) throw new Error(JSON.stringify(errors));
  return schema as Document;
}
