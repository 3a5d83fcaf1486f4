import { Stack, Text } from '@mantine/core';
import type { Answer } from '../answers.ts';
import { useTexts } from '../i18n/index.tsx';
import type { Acts } from '../ui/act.ts';
import { useParam } from '../ui/address.ts';
import { useApp } from '../ui/app.tsx';
import { fieldsOf, isSaid } from '../ui/change-rows.ts';
import { Changes, Difference } from '../ui/changes.tsx';
import { Icon } from '../ui/icons.tsx';
import { List } from '../ui/list.tsx';
import { PageHead, PageTabs, useTab } from '../ui/page.tsx';
import { Empty, Panel } from '../ui/parts.tsx';
import { Stated, type Statement, useSentence } from '../ui/statement.tsx';
import { useThing } from '../ui/thing.tsx';
import { Fields, Value } from '../ui/value.tsx';
import { useWords } from '../ui/words.ts';

const nameOf = (person: unknown): string => {
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
            <span data-recorded="">
              {sentence(String(item['operation']), item['statement'] as Statement)}
            </span>
          </>
        ) : name === 'maker' || name === 'checker' ? (
          <Value name={name} value={nameOf(item[name])} />
        ) : undefined
      }
      empty={isWaiting && <Empty icon={<Icon name="approvals" size={26} />} text={nothing} />}
    />
  );
}

type Approval = Answer<'approval.show'>;

/** What the head of the page and its panels say. */
const IN_HEAD = ['id', 'operation', 'state', 'statement', 'effect', 'input', 'output', 'approvers'];

/** A proposal: the change in words, and the decision. */
export function Thing() {
  const { approvals: texts, details } = useTexts();
  const words = useWords();
  const { session, operations } = useApp();
  const id = useParam('id');
  const { thing, instead } = useThing<Approval>(`/approvals/${id}`, {
    refetchMs: ({ state }) => (state === 'PENDING' ? 10_000 : false),
  });
  if (!thing) return instead;
  const maker = thing['maker'] as { id?: unknown; userId?: unknown } | null;
  const isMine = String(maker?.userId ?? maker?.id ?? '') === session?.user.id;
  // Alone, after a delay, or as long as nobody else could approve anything.
  const isAlone = thing['notBefore'] !== null || session?.alone === true;
  // The service requires a role that may approve the operation.
  const mayDecide = operations
    ?.get(thing.operation)
    ?.approvers.some((role) => session?.user.roles.includes(role));
  // A decision has a comment, which is its reason.
  const given = { id, reason: undefined };
  const effect = <Stated operation={thing.operation} of={thing.statement} />;
  const decisions: Acts = [
    mayDecide &&
      (!isMine || isAlone) && {
        name: 'approval.approve',
        given: { ...given, effect: undefined },
        effect,
        proposed: thing.operation,
      },
    isMine && { name: 'approval.withdraw', effect, given },
    !isMine && mayDecide && { name: 'approval.reject', effect, given, isDanger: true },
  ];
  const { maker: _maker, checker: _checker, ...rest } = thing;
  // The effect names the thing whose number it is.
  const isNamed = (name: string) => name === 'id' && Boolean(thing.effect?.length);
  const input = Object.entries(thing.input).filter(
    ([name, value]) => !isNamed(name) && !isSaid(thing.statement.values, name, value),
  );
  const shown = {
    ...rest,
    maker: nameOf(thing['maker']),
    checker: thing['checker'] && nameOf(thing['checker']),
  };
  return (
    <>
      <PageHead
        back="approvals"
        title={words.title(thing.operation)}
        state={thing.state}
        primary={!isMine || isAlone}
        acts={thing.state === 'PENDING' ? decisions : []}
        of="approval.show"
        given={{ id }}
      />
      <div className="two">
        <Stack>
          <Panel title={texts.what} padded>
            <Stated operation={thing.operation} of={thing.statement} />
            <Difference before={{}} after={thing.statement.values} />
          </Panel>
          <Panel title={texts.effect} padded>
            {thing.effect && thing.effect.length > 0 ? (
              <Changes of={thing.effect} />
            ) : (
              <Text size="sm" className="quiet">
                {texts.noEffect}
              </Text>
            )}
          </Panel>
          {input.length > 0 && (
            <Panel title={texts.input} padded>
              <Difference
                before={{}}
                after={Object.fromEntries(input)}
                currency={fieldsOf(thing.effect?.[0]?.after)['currency']}
              />
            </Panel>
          )}
        </Stack>
        <Panel title={details} padded>
          <Fields of={shown} without={IN_HEAD} />
        </Panel>
      </div>
    </>
  );
}
