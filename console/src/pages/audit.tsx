import { useSearch } from '@tanstack/react-router';
import { useTexts } from '../i18n/index.tsx';
import { Action } from '../ui/action.tsx';
import { type Filters, List } from '../ui/list.tsx';
import { Head } from '../ui/parts.tsx';
import { Same } from '../ui/same.tsx';

export function Screen() {
  const { nav } = useTexts();
  const search = useSearch({ strict: false }) as Filters;
  return (
    <>
      <Head title={nav.audit}>
        <Action name="audit.verify" label="Verify the chain" />
        <Same name="audit.list" given={search} />
      </Head>
      <List
        path="/audit"
        search={search}
        filters={[
          { name: 'actor' },
          { name: 'action' },
          { name: 'subject' },
          { name: 'from' },
          { name: 'to' },
        ]}
        columns={['occurredAt', 'action', 'subject', 'actor', 'reason', 'before', 'after']}
      />
    </>
  );
}
