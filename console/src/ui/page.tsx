import { Tabs } from '@mantine/core';
import { useNavigate } from '@tanstack/react-router';
import { type ReactNode, Suspense } from 'react';
import type { Catalogue } from '../i18n/en.ts';
import { useTexts } from '../i18n/index.tsx';
import type { Act, Acts } from './act.ts';
import { Actions } from './actions.tsx';
import { type Filters, useChangeFilters, useFilters } from './address.ts';
import { Icon, type IconName } from './icons.tsx';
import { List } from './list.tsx';
import type { ListProps } from './lists.tsx';
import { Busy, Empty, Head, PartName } from './parts.tsx';
import { pageOf } from './places.ts';
import { Same } from './same.tsx';
import { State } from './value.tsx';

type HeadProps = {
  readonly title: string;
  /** What the page shows instead of the title. */
  readonly shown?: ReactNode;
  readonly state?: string | null | undefined;
  readonly note?: ReactNode;
  /** The list to which the page of one thing belongs: its name in the menu is also its address. */
  readonly back?: keyof Catalogue['nav'];
  readonly acts?: Acts;
  readonly primary?: boolean;
  /** The operation whose answer the page shows, and its input. */
  readonly of?: string;
  readonly given?: Filters;
  readonly children?: ReactNode;
};

/** The head of a page behind the sign-in: its title and state, its actions, and the same as a command. */
export function PageHead(props: HeadProps) {
  const { title, shown, state, note, back, acts = [], primary, of, given, children } = props;
  const { nav } = useTexts();
  return (
    <Head
      name={title}
      title={
        <>
          {shown ?? <bdi>{title}</bdi>} {state && <State name={state} />}
        </>
      }
      note={note}
      back={back && { to: `/${back}`, label: nav[back] }}
    >
      <Actions primary={primary} acts={acts} />
      {children}
      {of && <Same name={of} given={given} />}
    </Head>
  );
}

type ListPageProps = Omit<ListProps, 'empty' | 'search' | 'title'> & {
  /** Its name in the menu, by which the text of an empty list is known too. */
  readonly name: keyof Catalogue['nav'] & keyof Catalogue['empty'] & IconName;
  readonly note?: string;
  /** The operation that adds an item, whose page it opens. */
  readonly create?: string;
  readonly effect?: Act['effect'];
  /** What else the head of the page offers. */
  readonly children?: ReactNode;
};

/** A page that is one list, and adds to it. */
export function ListPage({ name, note, create, effect, children, ...list }: ListPageProps) {
  const { nav, empty } = useTexts();
  const navigate = useNavigate();
  const search = useFilters();
  const to = pageOf(list.of);
  const onDone = to && ((made: Readonly<Record<string, unknown>>) => void navigate({ to: to(made) }));
  const acts: Acts = create ? [{ name: create, effect, onDone }] : [];
  return (
    <>
      <PageHead title={nav[name]} note={note} primary acts={acts} of={list.of} given={search}>
        {children}
      </PageHead>
      <List
        {...list}
        search={search}
        empty={<Empty icon={<Icon name={name} size={26} />} text={empty[name]} />}
      />
    </>
  );
}

/** Returns the key of the open tab: the one in the address, or else the first. */
export function useTab(keys: readonly string[]): string {
  const { tab } = useFilters();
  return keys.find((key) => key === tab) ?? keys[0] ?? '';
}

type TabsProps = {
  readonly tabs: readonly { readonly key: string; readonly label: string; readonly body: ReactNode }[];
};

/** Tabs, of which the address names the open one. The filters of a tab end with it. */
export function PageTabs({ tabs }: TabsProps) {
  const change = useChangeFilters();
  const open = useTab(tabs.map(({ key }) => key));
  const choose = (key: string | null) =>
    change({ tab: key === tabs[0]?.key ? undefined : (key ?? undefined) });
  return (
    <Tabs value={open} onChange={choose} keepMounted={false}>
      <Tabs.List mb="md" aria-labelledby="title">
        {tabs.map(({ key, label }) => (
          <Tabs.Tab key={key} value={key} ref={key === open ? tabIntoView : undefined}>
            {label}
          </Tabs.Tab>
        ))}
      </Tabs.List>
      {tabs.map(({ key, label, body }) => (
        <Tabs.Panel key={key} value={key}>
          <PartName value={label}>
            <Suspense fallback={<Busy />}>{body}</Suspense>
          </PartName>
        </Tabs.Panel>
      ))}
    </Tabs>
  );
}

/** Scrolls the tabs, but not the page, until a tab is visible. */
function tabIntoView(tab: HTMLElement | null): void {
  const list = tab?.parentElement;
  if (list) list.scrollLeft = tab.offsetLeft + tab.offsetWidth - list.clientWidth;
}
