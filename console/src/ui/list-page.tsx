import { useNavigate, useSearch } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { Actions } from './actions.tsx';
import { type Filters, List, type ListProps } from './list.tsx';
import { Empty, Head } from './parts.tsx';
import { Same } from './same.tsx';

type Props = Omit<ListProps, 'empty' | 'search' | 'title'> & {
  readonly title: string;
  readonly note?: string;
  /** The operation that adds an item, whose page it opens. */
  readonly create?: string;
  /** The text of an empty list. */
  readonly empty: string;
  /** What else the head of the page offers. */
  readonly children?: ReactNode;
};

/** A page that is one list, and adds to it. */
export function ListPage({ title, note, create, empty, children, ...list }: Props) {
  const navigate = useNavigate();
  const search = useSearch({ strict: false }) as Filters;
  const { to } = list;
  const onDone = to && ((made: Readonly<Record<string, unknown>>) => void navigate({ to: to(made) }));
  const button = create && <Actions primary acts={[{ name: create, onDone }]} />;
  return (
    <>
      <Head title={title} note={note}>
        {children}
        {button}
        <Same name={list.of} given={search} />
      </Head>
      <List {...list} search={search} empty={<Empty text={empty} action={button} />} />
    </>
  );
}
