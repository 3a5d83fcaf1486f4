import Type, { type Static, type TSchema } from 'typebox';

/** Schemas that every door uses. */

/**
 * A schema that also accepts null. It is written as a list of types, the form that is fastest to validate, to
 * serialize and to document.
 */
export function Nullable<Schema extends TSchema>(schema: Schema, options: object = {}) {
  const { type } = schema as { type?: string };
  return Type.Unsafe<Static<Schema> | null>({ ...schema, type: [type, 'null'], ...options });
}

/** A string from a closed list. */
export function Word<const Words extends readonly string[]>(words: Words, options: object = {}) {
  return Type.Unsafe<Words[number]>({ type: 'string', enum: words, ...options });
}
