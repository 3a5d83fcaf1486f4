import { useTexts } from '../i18n/index.tsx';
import { ListPage } from '../ui/list-page.tsx';

export function Screen() {
  const texts = useTexts();
  return (
    <ListPage
      title={texts.nav.products}
      create="product.create"
      of="product.list"
      to={({ code }) => `/products/${code}`}
      empty={texts.empty.products}
    />
  );
}
