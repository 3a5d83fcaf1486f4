/**
 * The parts that all OpenAPI documents of the service share: what a document repeats becomes a component,
 * which the places refer to. A schema of an object is a component if it has a `title`.
 */

type Json = { readonly [name: string]: unknown };
type Components = { schemas: Record<string, Json>; examples: Record<string, Json> };

const COMPONENT = /^[A-Z][A-Za-z0-9]*$/;
const FIELD = new Set<unknown>(['string', 'number', 'integer', 'boolean', 'array']);

/** Returns a document whose named schemas and repeated examples are components. */
export function withComponents(document: Json): Json {
  const components: Components = { schemas: {}, examples: {} };
  // Only what JSON can carry: schemas also have keys for TypeBox.
  const plain = JSON.parse(JSON.stringify(document)) as Json;
  const own = plain['components'] as { schemas?: Json } | undefined;
  const visited = refer(plain, components, repeatedExamples(plain)) as Json;
  return {
    ...visited,
    components: { ...own, schemas: components.schemas, examples: components.examples },
  };
}

function refer(value: unknown, components: Components, repeated: ReadonlySet<string>): unknown {
  if (Array.isArray(value)) return value.map((each) => refer(each, components, repeated));
  if (value === null || typeof value !== 'object') return value;
  const entries = Object.entries(value).map(([key, each]) => {
    // An extension is no schema, whatever its fields are called.
    if (key.startsWith('x-')) return [key, each] as const;
    const inner =
      key === 'examples' && !Array.isArray(each) ? examplesOf(each as Json, components, repeated) : each;
    return [key, refer(inner, components, repeated)] as const;
  });
  const copy = Object.fromEntries(entries) as Json;
  const { title, type, description } = copy;
  if (typeof title !== 'string' || !COMPONENT.test(title)) return copy;
  // The title of a field is its label.
  if ([type].flat().some((each) => FIELD.has(each))) return copy;
  const isNullable = Array.isArray(type);
  const reference = { $ref: `#/components/schemas/${title}` };
  const schema = { ...copy, type: 'object' };
  if (isNullable)
    return { anyOf: [reference, { type: 'null' }], ...(description !== undefined && { description }) };
  const before = components.schemas[title];
  if (before && JSON.stringify(before) !== JSON.stringify(schema))
    throw new Error(`two schemas have the title ${title}`);
  components.schemas[title] = schema;
  return reference;
}

function examplesOf(examples: Json, components: Components, repeated: ReadonlySet<string>): Json {
  return Object.fromEntries(
    Object.entries(examples).map(([name, example]) => {
      if (!repeated.has(JSON.stringify(example))) return [name, example];
      let component = name;
      for (let number = 2; ; number++) {
        const known = components.examples[component];
        if (!known || JSON.stringify(known) === JSON.stringify(example)) break;
        component = `${name}_${number}`;
      }
      components.examples[component] = example as Json;
      return [name, { $ref: `#/components/examples/${component}` }];
    }),
  );
}

function repeatedExamples(document: unknown): Set<string> {
  const seen = new Set<string>();
  const twice = new Set<string>();
  const visit = (value: unknown): void => {
    if (value === null || typeof value !== 'object') return;
    for (const [key, each] of Object.entries(value)) {
      if (key === 'examples' && each !== null && !Array.isArray(each))
        for (const example of Object.values(each as Json).map((one) => JSON.stringify(one)))
          (seen.has(example) ? twice : seen).add(example);
      visit(each);
    }
  };
  visit(document);
  return twice;
}
