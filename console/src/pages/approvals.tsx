import { Tabs } from '@mantine/core';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useTexts } from '../i18n/index.tsx';
import { type Filters, List } from '../ui/list.tsx';
import { Empty, Head } from '../ui/parts.tsx';
import { Same } from '../ui/same.tsx';
import { type Statement, useSentence } from '../ui/statement.tsx';
import { Value } from '../ui/value.tsx';
import { useWords } from '../ui/words.ts';

export const nameOf = (person: unknown): string => {
  if (typeof person !== 'object' || person === null) return String(person ?? '–');
  const { name, email } = person as { name?: string; email?: string };
  return name ?? email ?? '–';
};

export function Screen() {
  const texts = useTexts().approvals;
  const { title } = useWords();
  const sentence = useSentence();
  const navigate = useNavigate();
  const { tab = 'forMe' } = useSearch({ strict: false }) as Filters;
  const isWaiting = tab === 'forMe';
  const fixed = tab === 'all' ? {} : { [tab]: 'true' };
  return (
    <>
      <Head title={texts.title} note={texts.lead}>
        <Same name="approval.list" given={fixed} />
      </Head>
      <Tabs
        value={tab}
        mb="md"
        onChange={(next) =>
          void navigate({ to: '.', search: (next === 'forMe' ? {} : { tab: next }) as never })
        }
      >
        <Tabs.List>
          {(['forMe', 'mine', 'all'] as const).map((each) => (
            <Tabs.Tab key={each} value={each}>
              {texts[each]}
            </Tabs.Tab>
          ))}
        </Tabs.List>
      </Tabs>
      <List
        key={tab}
        of="approval.list"
        fixed={fixed}
        refetchMs={10_000}
        columns={[
          'createdAt',
          'what',
          'maker',
          'reason',
          ...(isWaiting ? ['expiresAt'] : ['state', 'checker']),
        ]}
        narrow={['createdAt', 'what', isWaiting ? 'maker' : 'state']}
        to={({ id }) => `/approvals/${id}`}
        cell={(name, item) =>
          name === 'what' ? (
            <>
              <span className="quiet">{title(String(item['operation']))}</span>
              <br />
              {sentence(String(item['operation']), item['statement'] as Statement)}
            </>
          ) : name === 'maker' || name === 'checker' ? (
            <Value name={name} value={nameOf(item[name])} />
          ) : undefined
        }
        empty={isWaiting && <Empty text={texts.nothing} />}
      />
    </>
  );
}
