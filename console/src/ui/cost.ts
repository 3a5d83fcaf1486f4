import type { Input } from './act.ts';
import { useFormat } from './format.ts';
import { useMerchants, useProducts } from './names.ts';

/** Returns what an order of vouchers of one value costs, once it is known in which currency. */
export function useCost() {
  const format = useFormat();
  const { merchants } = useMerchants();
  const products = useProducts();
  return ({ merchantId, product, quantity, value }: Input): string | undefined => {
    const code = product ?? merchants.find(({ id }) => id === merchantId)?.product;
    const currency = products.find((each) => each.code === code)?.currency;
    const [count, each] = [Number(quantity), Number(value)];
    if (currency === undefined || !(count > 0) || !(each > 0)) return undefined;
    const [one, all] = [format.money(each, currency), format.money(count * each, currency)];
    return `${format.number(count)} × ${one} = ${all}`;
  };
}
