import { useTexts } from '../i18n/index.tsx';
import { List } from '../ui/list.tsx';
import { PageHead, PageTabs, useTab } from '../ui/page.tsx';
import { Empty } from '../ui/parts.tsx';
import { type Statement, useSentence } from '../ui/statement.tsx';
import { Value } from '../ui/value.tsx';
import { useWords } from '../ui/words.ts';

export const nameOf = (person: unknown): string => {
  if (typeof person !== 'object' || person === null) return String(person ?? '–');
  const { name, email } = person as { name?: string; email?: string };
  return name ?? email ?? '–';
};

const TABS = ['forMe', 'mine', 'all'] as const;
type Tab = (typeof TABS)[number];

export function Screen() {
  const { approvals: texts, nav } = useTexts();
  const tab = useTab(TABS);
  return (
    <>
      <PageHead title={nav.approvals} note={texts.lead} of="approval.list" given={filterOf(tab)} />
      <PageTabs tabs={TABS.map((key) => ({ key, label: texts[key], body: <Approvals tab={key} /> }))} />
    </>
  );
}

const filterOf = (tab: string) => (tab === 'all' ? {} : { [tab]: 'true' });

function Approvals({ tab }: { tab: Tab }) {
  const { nothing } = useTexts().approvals;
  const { title } = useWords();
  const sentence = useSentence();
  const isWaiting = tab === 'forMe';
  return (
    <List
      of="approval.list"
      fixed={filterOf(tab)}
      refetchMs={10_000}
      columns={[
        'createdAt',
        'what',
        'maker',
        'reason',
        ...(isWaiting ? ['expiresAt'] : ['state', 'checker']),
      ]}
      narrow={['createdAt', 'what', isWaiting ? 'maker' : 'state']}
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
      empty={isWaiting && <Empty text={nothing} />}
    />
  );
}
