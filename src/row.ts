import type { Static, TObject, TProperties, TSchema } from 'typebox';
import { named, raw, type Sql } from './db/sql.ts';

/**
 * The columns of a row follow from the schema of the row: `maxQuantity` is `max_quantity`, and an amount
 * `minValue` is `min_value_minor`.
 */

type Shape = { readonly type?: unknown; readonly format?: string; readonly pattern?: string };

const snake = (field: string) => field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

function columnOf(field: string, schema: TSchema | undefined): string {
  return (schema as Shape | undefined)?.format === 'money' ? `${snake(field)}_minor` : snake(field);
}

/**
 * Returns what `select` takes to read rows in the shape of a schema. Ids and days are read as text.
 * @param from the table's name in the statement, if it is not the only table
 * @param read the expressions of fields that are no columns of their names
 */
export function columnsOf<Properties extends TProperties>(
  { properties }: TObject<Properties>,
  from?: string,
  read: { readonly [Field in keyof Properties]?: Sql } = {},
): Sql {
  const columns = Object.entries<TSchema>(properties).map(([field, schema]) => {
    const column = `${from === undefined ? '' : `${from}.`}${columnOf(field, schema)}`;
    const isText = (schema as Shape).pattern !== undefined;
    return [field, read[field] ?? raw(`${column}${isText ? '::text' : ''}`)];
  });
  return named(Object.fromEntries(columns));
}

/** Returns the given fields of a row by the names of their columns, for `insertInto` and `assign`. */
export function storedAs<Row extends TObject>(
  { properties }: Row,
  given: Partial<Static<Row>>,
): Readonly<Record<string, unknown>> {
  const fields = Object.entries(given).filter(([field, value]) => field in properties && value !== undefined);
  return Object.fromEntries(fields.map(([field, value]) => [columnOf(field, properties[field]), value]));
}
