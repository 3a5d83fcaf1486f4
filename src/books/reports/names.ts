import type { Queries } from '../../db/pool.ts';
import { findClosed, listNames } from './queries.ts';

export type Names = {
  readonly merchants: ReadonlyMap<number, string>;
  readonly products: ReadonlyMap<number, Product>;
};

type Product = {
  readonly id: number;
  readonly code: string;
  readonly scope: string;
  readonly expiryPolicy: string;
};

type Row = { what: string; id: number; name: string; scope: string | null; expiry_policy: string | null };

/** The names of merchants at a time, and the codes and terms of products. */
export async function readNames(tx: Queries, at: Date): Promise<Names> {
  const rows = await tx.query<Row>(listNames(at));
  const products = rows.filter(({ what }) => what === 'product');
  return {
    merchants: new Map(rows.filter(({ what }) => what === 'merchant').map(({ id, name }) => [id, name])),
    products: new Map(
      products.map(({ id, name, scope, expiry_policy }) => [
        id,
        { id, code: name, scope: scope ?? '', expiryPolicy: expiry_policy ?? '' },
      ]),
    ),
  };
}

export async function findLastClosed(tx: Queries, day: string) {
  const [row] = await tx.query<{ hash: Buffer; closed_at: Date }>(findClosed(day));
  return row;
}

export const productOf = ({ products }: Names, id: number) => products.get(id)?.code ?? '';
export const merchantOf = ({ merchants }: Names, id: number) => (id === 0 ? '' : (merchants.get(id) ?? ''));
