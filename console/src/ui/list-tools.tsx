import './dialog-styles.ts';
import { ActionIcon, Button, Checkbox, Group } from '@mantine/core';
import { useState } from 'react';
import type { Query } from '../api.ts';
import { useChangeFilters, useFilters } from './address.ts';
import { Dialog } from './dialog.tsx';
import { Export } from './export.tsx';
import { FilterBar } from './filters.tsx';
import type { Item } from './item.ts';
import { useListTexts } from './list-texts.ts';
import './list-tools.css';
import { SelectionBar } from './selection-bar.tsx';
import { SaveView, ViewTabs } from './view-tabs.tsx';
import { useWords } from './words.ts';

export { FilterBar, SelectionBar, ViewTabs };

type Props = {
  readonly path: string;
  readonly query: Query;
  readonly isPaged: boolean;
  readonly items: readonly Item[];
  /** The columns that are shown, and those that are shown if nobody chooses. */
  readonly columns: readonly string[];
  readonly standard: readonly string[];
  /** The parameters in the address of a list that fills its page; undefined for other lists. */
  readonly names: readonly string[] | undefined;
};

/** What is done with a whole list: its view is saved, its columns are chosen, and it is exported. */
export function ListTools({ names, columns, standard, items, ...list }: Props) {
  const hasChosen = columns !== standard;
  return (
    <Group gap={8} className="list-tools">
      {names && <SaveView names={names} />}
      {names && items.length > 0 && <Columns columns={columns} standard={standard} items={items} />}
      {items.length > 0 && <Export columns={columns} isWhole={!hasChosen} {...list} />}
    </Group>
  );
}

/** The head of a column that sorts the list: first ascending, then descending, then as without it. */
export function SortButton({ of: name }: { readonly of: string }) {
  const { label } = useWords();
  const change = useChangeFilters();
  const address = useFilters();
  const orders = [undefined, name, `-${name}`];
  const at = Math.max(orders.indexOf(address['sort']), 0);
  const next = orders[(at + 1) % orders.length];
  return (
    <button
      type="button"
      className="sort"
      onClick={() => change({ ...address, sort: next }, { replace: true })}
    >
      {label(name)}
      <span aria-hidden="true">{['', ' ↑', ' ↓'][at]}</span>
    </button>
  );
}

type ColumnsProps = Pick<Props, 'columns' | 'standard' | 'items'>;

/** Chooses the columns. They are in the address, as the filters are. */
function Columns(props: ColumnsProps) {
  const texts = useListTexts();
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <Button variant="default" onClick={() => setOpen(true)}>
        {texts.columns}
      </Button>
      <Dialog opened={isOpen} onClose={() => setOpen(false)} title={texts.columns}>
        <Choice {...props} />
      </Dialog>
    </>
  );
}

/** A cell has room for texts, numbers, amounts and lists of them. */
const isInCell = (value: unknown) =>
  [value].flat().every((each) => typeof each !== 'object' || each === null || 'amount' in each);

function Choice({ columns, standard, items }: ColumnsProps) {
  const texts = useListTexts();
  const { label } = useWords();
  const change = useChangeFilters();
  const address = useFilters();
  const others = Object.keys(items[0] ?? {}).filter((name) => items.every((item) => isInCell(item[name])));
  // A column that is no longer shown stays in its place, so that the focus does.
  const [order, setOrder] = useState([...new Set([...columns, ...standard, ...others])]);
  const show = (names: readonly string[]) => {
    const chosen = names.join(',');
    change({ ...address, columns: chosen === standard.join(',') ? undefined : chosen }, { replace: true });
  };
  const toggle = (name: string) => show(order.filter((each) => columns.includes(each) !== (each === name)));
  const moveUp = (name: string) => {
    const at = order.indexOf(name);
    const moved = order.with(at - 1, name).with(at, order[at - 1] ?? name);
    setOrder(moved);
    show(moved.filter((each) => columns.includes(each)));
  };
  const reset = () => {
    setOrder([...new Set([...standard, ...order])]);
    show(standard);
  };
  return (
    <>
      <ul className="plain-list columns">
        {order.map((name, index) => (
          <li key={name} className="line">
            <Checkbox
              label={label(name)}
              checked={columns.includes(name)}
              // A list without columns would be empty.
              disabled={columns.length === 1 && columns.includes(name)}
              onChange={() => toggle(name)}
            />
            {index > 0 && (
              <ActionIcon variant="subtle" aria-label={texts.up(label(name))} onClick={() => moveUp(name)}>
                ↑
              </ActionIcon>
            )}
          </li>
        ))}
      </ul>
      <Group justify="flex-end" mt="md">
        <Button variant="default" onClick={reset}>
          {texts.reset}
        </Button>
      </Group>
    </>
  );
}
