import { useNavigate, useSearch } from '@tanstack/react-router';
import { useTexts } from '../i18n/index.tsx';
import { Actions } from '../ui/actions.tsx';
import { ShortDifference, Subject } from '../ui/changes.tsx';
import { type Filters, List } from '../ui/list.tsx';
import { Empty, Head } from '../ui/parts.tsx';
import { Same } from '../ui/same.tsx';
import { useWords } from '../ui/words.ts';

export function Screen() {
  const texts = useTexts();
  const { title } = useWords();
  const navigate = useNavigate();
  const search = useSearch({ strict: false }) as Filters;
  return (
    <>
      <Head title={texts.nav.audit} note={texts.audit.lead}>
        <Actions
          acts={[{ name: 'audit.verify', onDone: ({ id }) => void navigate({ to: `/jobs/${id}` }) }]}
        />
        <Same name="audit.list" given={search} />
      </Head>
      <List
        path="/audit"
        search={search}
        filters={['actor', 'action', 'subject', 'from', 'to'].map((name) => ({ name }))}
        columns={['occurredAt', 'action', 'subject', 'actor', 'effect', 'reason']}
        wide={['subject', 'effect', 'reason']}
        cell={(name, item) =>
          name === 'effect' ? (
            <ShortDifference before={item['before']} after={item['after']} />
          ) : name === 'action' ? (
            <span title={String(item['action'])}>{title(String(item['action']))}</span>
          ) : name === 'subject' ? (
            <Subject of={String(item['subject'])} />
          ) : undefined
        }
        empty={<Empty text={texts.empty.audit} />}
      />
    </>
  );
}
