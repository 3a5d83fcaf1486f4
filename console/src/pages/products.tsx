import { ListPage } from '../ui/page.tsx';

export function Screen() {
  return <ListPage name="products" create="product.create" of="product.list" />;
}
