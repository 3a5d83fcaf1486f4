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

/** Schemas with money in them, so that others cost nothing. */
const hasMoney = new WeakMap<object, boolean>();

function containsMoney(shape: Shape | undefined): boolean {
  if (!shape) return false;
  let found = hasMoney.get(shape);
  if (found === undefined) {
    found =
      shape.format === 'money' ||
      containsMoney(shape.items) ||
      Object.values(shape.properties ?? {}).some(containsMoney);
    hasMoney.set(shape, found);
  }
  return found;
}

/** Returns a value in the form of its schema. */
export function rendered<Value>(schema: TSchema, value: Value): Value {
  return render(schema as Shape, value, undefined) as Value;
}

function render(shape: Shape | undefined, value: unknown, currency: string | undefined): unknown {
  if (typeof value === 'bigint' && shape?.format === 'money') return toMajor(value, currency);
  if (value === null || typeof value !== 'object' || !containsMoney(shape)) return value;
  if (Array.isArray(value)) return value.map((each) => render(shape?.items, each, currency));
  const { currency: own = currency } = value as { currency?: string };
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => [name, render(shape?.properties?.[name], each, own)]),
  );
}

function toMajor(minor: bigint, currency: string | undefined): number {
  const decimals = currency === undefined ? undefined : decimalsOf(currency);
  if (decimals === undefined) throw new Error('an amount has no currency beside it');
  return toNumber({ minor, decimals });
}
