import Type, { type Static } from 'typebox';
import { sql } from '../db/sql.ts';
import { listing } from '../listing.ts';
import { columnsOf } from '../row.ts';
import { MerchantId, toId } from '../schema.ts';
import { ProductRow, products } from './products.ts';

/** The products of a merchant: those that it may order, and those of the vouchers that it has redeemed. */

const OWN = ['code', 'name', 'currency', 'onSale'] as const;
const Row = Type.Pick(ProductRow, ['id', ...OWN]);

export const ownProducts = listing({
  ...products.list,
  summary: 'List the products that you may order, and those whose vouchers you have redeemed, oldest first',
  item: Type.Pick(ProductRow, OWN),
  filters: { merchantId: MerchantId },
  columns: [...OWN],
  rows: ({ service: { readDb } }, { merchantId }, [after = 0], count) => {
    const id = toId(merchantId);
    return readDb.query<Static<typeof Row>>(sql`
select ${columnsOf(Row)} from products
where id > ${Number(after)} and (merchant_id is null or merchant_id = ${id} or id in (
  select product_id from book_movements where merchant_id = ${id}))
order by id limit ${count}`);
  },
});
