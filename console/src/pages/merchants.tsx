import { useNavigate, useSearch } from '@tanstack/react-router';
import { useTexts } from '../i18n/index.tsx';
import { Action } from '../ui/action.tsx';
import { type Filters, List } from '../ui/list.tsx';
import { Empty, Head } from '../ui/parts.tsx';
import { Same } from '../ui/same.tsx';

export function Screen() {
  const texts = useTexts();
  const navigate = useNavigate();
  const search = useSearch({ strict: false }) as Filters;
  const create = (
    <Action
      name="merchant.create"
      label="Create a merchant"
      primary
      onDone={({ id }) => navigate({ to: `/merchants/${id}` })}
    />
  );
  return (
    <>
      <Head title={texts.nav.merchants}>
        {create}
        <Same name="merchant.list" given={search} />
      </Head>
      <List
        path="/merchants"
        search={search}
        columns={['id', 'name', 'permissions', 'suspendedAt', 'product']}
        to={({ id }) => `/merchants/${id}`}
        empty={<Empty text={texts.list.empty} action={create} />}
      />
    </>
  );
}
