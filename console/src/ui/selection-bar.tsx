import { Button, Group } from '@mantine/core';
import type { ReactNode } from 'react';
import type { Item } from './item.ts';
import { useListTexts } from './list-texts.ts';

type BarProps = { readonly items: readonly Item[]; readonly children: ReactNode; clear(): void };

/** What can be done with the selected rows, instead of the filters. */
export function SelectionBar({ items, clear, children }: BarProps) {
  const texts = useListTexts();
  return (
    <Group gap={8} role="toolbar" aria-label={texts.selected(items.length)}>
      <b>{texts.selected(items.length)}</b>
      {children}
      <Button variant="subtle" onClick={clear}>
        {texts.unselect}
      </Button>
    </Group>
  );
}
