import { Button, Group, Stack, Text } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { useRef, useState } from 'react';
import { type Query, readPages } from '../api.ts';
import { useTexts } from '../i18n/index.tsx';
import { useApp } from './app.tsx';
import { saveCsv } from './csv.ts';
import { plain } from './csv-text.ts';
import { Dialog } from './dialog.tsx';
import { useFormat } from './format.ts';
import type { Item } from './item.ts';
import { useListTexts } from './list-texts.ts';
import { useWhenLoaded } from './loaded.ts';
import { Problem } from './parts.tsx';
import { isWordOf } from './value.tsx';
import { useWords } from './words.ts';
import type { Said } from './xlsx.ts';

const ROWS_MAX = 50_000;
const loadXlsx = () => import('./xlsx.ts');

type Props = {
  path: string;
  query: Query;
  columns: readonly string[];
  /** Whether fields that are no columns are saved, too. */
  isWhole: boolean;
  isPaged: boolean;
};

/** How a workbook says the fields of a list. */
function useSaid(): Said {
  const { yes, no } = useTexts().list;
  const { label, kind } = useWords();
  const { shapeOf } = useApp();
  const said = (name: string, value: unknown): string | undefined => {
    if (typeof value === 'boolean') return value ? yes : no;
    if (Array.isArray(value)) return value.map((each) => said(name, each) ?? plain(each)).join(', ');
    return typeof value === 'string' && isWordOf(shapeOf(name), value) ? kind(value, name) : undefined;
  };
  return { label, kindOf: (name) => (shapeOf(name).isMoney ? 'money' : 'any'), wordOf: said };
}

/** Exports exactly the filtered list: reads it to its end, shows the number of rows, then saves them. */
export function Export({ path, query, columns, isWhole, isPaged }: Props) {
  const { action, list } = useTexts();
  const texts = useListTexts();
  const format = useFormat();
  const [isOpen, setOpen] = useState(false);
  const [items, setItems] = useState<readonly Item[]>([]);
  const reading = useRef(0);
  const said = useSaid();
  const whenLoaded = useWhenLoaded();
  const { mutate, error, isSuccess } = useMutation({
    mutationFn: async () => {
      const own = ++reading.current;
      const read: Item[] = [];
      for await (const page of readPages<Item>(path, query, isPaged)) {
        if (own !== reading.current) return;
        read.push(...page);
        setItems([...read]);
        if (read.length >= ROWS_MAX) return;
      }
    },
  });
  const open = () => {
    setOpen(true);
    setItems([]);
    mutate();
  };
  const close = () => {
    reading.current++;
    setOpen(false);
  };
  const names = [...new Set([...columns, ...(isWhole ? Object.keys(items[0] ?? {}) : [])])];
  const file = path.slice(1).replaceAll('/', '-');
  const csv = () => {
    saveCsv(`${file}.csv`, names, items);
    close();
  };
  const xlsx = () =>
    whenLoaded(async () => (await loadXlsx()).saveXlsx(`${file}.xlsx`, names, items, said), close);
  return (
    <>
      <Button variant="default" onClick={open}>
        {list.exportCsv}
      </Button>
      <Dialog opened={isOpen} onClose={close} title={list.exportCsv}>
        <Stack>
          <Text size="sm">
            {isSuccess ? texts.exportAll : texts.counting}{' '}
            <b className="number">{format.number(items.length)}</b>
            {items.length >= ROWS_MAX ? `. ${texts.exportCapped}` : ''}
          </Text>
          {error && <Problem error={error} retry={open} />}
          <Group justify="flex-end" gap={8}>
            <Button variant="default" onClick={close}>
              {action.cancel}
            </Button>
            <Button variant="default" onClick={xlsx} disabled={!isSuccess}>
              {texts.workbook}
            </Button>
            {/* Once it can be pressed, it has the focus, also if that was before the dialog had it. */}
            <Button
              key={String(isSuccess)}
              autoFocus={isSuccess}
              data-autofocus={isSuccess || undefined}
              onClick={csv}
              loading={!isSuccess && !error}
              disabled={!isSuccess}
            >
              {texts.download}
            </Button>
          </Group>
        </Stack>
      </Dialog>
    </>
  );
}
