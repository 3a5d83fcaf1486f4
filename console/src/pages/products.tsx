import { useNavigate } from '@tanstack/react-router';
import { useTexts } from '../i18n/index.tsx';
import { Actions } from '../ui/actions.tsx';
import { List } from '../ui/list.tsx';
import { Empty, Head } from '../ui/parts.tsx';
import { Same } from '../ui/same.tsx';

export function Screen() {
  const texts = useTexts();
  const navigate = useNavigate();
  const create = (
    <Actions
      primary
      acts={[{ name: 'product.create', onDone: ({ code }) => void navigate({ to: `/products/${code}` }) }]}
    />
  );
  return (
    <>
      <Head title={texts.nav.products}>
        {create}
        <Same name="product.list" />
      </Head>
      <List
        of="product.list"
        to={({ code }) => `/products/${code}`}
        empty={<Empty text={texts.empty.products} action={create} />}
      />
    </>
  );
}
