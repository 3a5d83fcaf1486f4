import { Button, Group, Stack, Text } from '@mantine/core';
import { useRef, useState } from 'react';
import { get, type Page, type Query } from '../api.ts';
import { useTexts } from '../i18n/index.tsx';
import { saveCsv } from './csv.ts';
import { Dialog } from './dialog.tsx';
import { useFormat } from './format.ts';
import type { Item } from './list.tsx';
import { Problem } from './parts.tsx';

const ROWS_MAX = 50_000;

type Props = { path: string; query: Query; columns: readonly string[]; isPaged: boolean };

/** Exports exactly the filtered list: reads it to its end, shows the number of rows, then saves them. */
export function Export({ path, query, columns, isPaged }: Props) {
  const texts = useTexts();
  const format = useFormat();
  const [isOpen, setOpen] = useState(false);
  const [items, setItems] = useState<readonly Item[]>([]);
  const [isComplete, setComplete] = useState(false);
  const [error, setError] = useState<unknown>();
  const reading = useRef(0);

  const open = async () => {
    setOpen(true);
    setItems([]);
    setComplete(false);
    setError(undefined);
    const own = ++reading.current;
    const read: Item[] = [];
    let cursor: string | null = null;
    try {
      do {
        const page: Page<Item> = await get(path, {
          ...query,
          ...(isPaged && { limit: 200, cursor: cursor ?? undefined }),
        });
        if (own !== reading.current) return;
        read.push(...page.items);
        cursor = page.nextCursor;
        setItems([...read]);
      } while (cursor !== null && read.length < ROWS_MAX);
      setComplete(true);
    } catch (caught) {
      setError(caught);
    }
  };
  const close = () => {
    reading.current++;
    setOpen(false);
  };
  const names = [...new Set([...columns.filter(Boolean), ...Object.keys(items[0] ?? {})])];
  const download = () => {
    saveCsv(`${path.slice(1).replaceAll('/', '-')}.csv`, names, items);
    close();
  };
  return (
    <>
      <Button variant="default" onClick={open}>
        {texts.list.exportCsv}
      </Button>
      <Dialog opened={isOpen} onClose={close} title={texts.list.exportCsv}>
        <Stack>
          <Text size="sm">
            {isComplete ? texts.list.exportAll : texts.list.counting}{' '}
            <b className="number">{format.number(items.length)}</b>
            {items.length >= ROWS_MAX ? `. ${texts.list.exportCapped}` : ''}
          </Text>
          {error !== undefined && <Problem error={error} retry={open} />}
          <Group justify="flex-end" gap={8}>
            <Button variant="default" onClick={close}>
              {texts.action.cancel}
            </Button>
            <Button onClick={download} loading={!isComplete && error === undefined} disabled={!isComplete}>
              {texts.list.download}
            </Button>
          </Group>
        </Stack>
      </Dialog>
    </>
  );
}
