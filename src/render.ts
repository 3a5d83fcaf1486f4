import type { TSchema } from 'typebox';
import { decimalsOf, toNumber } from './money.ts';

/**
 * Renders what an operation returns by its schema. Amounts are minor units inside, as the database has them.
 * A field of the format `money` becomes a number in major units, by the currency of its object, or of the
 * nearest object around it.
 */

type Shape = {
  readonly type?: string | readonly string[];
  readonly format?: string;
  readonly properties?: Readonly<Record<string, Shape>>;
  readonly items?: Shape;
};

/** Returns a value in the form of its schema, without fields that the schema does not have. */
export function rendered<Value>(schema: TSchema, value: Value): Value {
  return render(schema as Shape, value, undefined) as Value;
}

function render(shape: Shape | undefined, value: unknown, currency: string | undefined): unknown {
  if (typeof value === 'bigint' && shape?.format === 'money') return toMajor(value, currency);
  if (Array.isArray(value))
    return shape?.items ? value.map((each) => render(shape.items, each, currency)) : value;
  const { properties } = shape ?? {};
  if (value === null || typeof value !== 'object' || !properties) return value;
  const { currency: own = currency } = value as { currency?: string };
  return Object.fromEntries(
    Object.entries(value)
      .filter(([name]) => name in properties)
      .map(([name, each]) => [name, render(properties[name], each, own)]),
  );
}

function toMajor(minor: bigint, currency: string | undefined): number {
  const decimals = currency === undefined ? undefined : decimalsOf(currency);
  if (decimals === undefined) throw new Error('an amount has no currency beside it');
  return toNumber({ minor, decimals });
}
