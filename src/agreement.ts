import type { AnyOperation, Asked, Value } from './operation.ts';

/** What two people agree on, in words. It is shown before it is approved, and kept with the approval. */
export type Statement = {
  /** The sentence in English, with its values. */
  readonly text: string;
  /** The sentence, with the names of values in braces. */
  readonly sentence: string;
  readonly values: Readonly<Record<string, Value>>;
  /** A page of the console about what it concerns. */
  readonly link: string;
};

/** Returns what an operation asks two people to agree on. Call it after the operation, in its rehearsal. */
export async function statementOf({ name, agreement }: AnyOperation, asked: Asked): Promise<Statement> {
  if (!agreement) throw new Error(`${name} is approved by nobody, and says nothing`);
  const { link, ...given } = await agreement.of(asked);
  const values = Object.entries(given).flatMap(([key, value]) => (value === undefined ? [] : [[key, value]]));
  const { sentence } = agreement;
  const text = sentence.replace(/\{(\w+)\}/g, (_all, key: string) =>
    [given[key] ?? 'the operator'].flat().join(', '),
  );
  return { text, sentence, values: Object.fromEntries(values), link };
}

/** Returns the values before and after the change with an action, or the first change. */
export function changeIn({ made }: Pick<Asked, 'made'>, action?: string) {
  const found = action === undefined ? made[0] : made.find((each) => each.action === action);
  const values = (side: unknown) => (side ?? {}) as Readonly<Record<string, Value>>;
  return { before: values(found?.before), after: values(found?.after) };
}
