import { Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { get, type Page } from '../api.ts';
import { useTexts } from '../i18n/index.tsx';
import { Actions, type Input } from './actions.tsx';
import { useFormat } from './format.ts';
import type { Item } from './list.tsx';
import { Panel } from './parts.tsx';
import { useWords } from './words.ts';

type Props = {
  readonly title: string;
  readonly how: string;
  /** The list of what was ordered. */
  readonly path: string;
  /** The operation that orders more. */
  readonly order: string;
  readonly given: Input;
  readonly effect: string;
};

/** Sheets of cards: one person gets the file, another its passphrase. */
export function Sheets({ title, how, path, order, given, effect }: Props) {
  const texts = useTexts().batch;
  const format = useFormat();
  const { word } = useWords();
  const { data } = useQuery({
    queryKey: ['sheets', path],
    queryFn: () => get<Page<Item>>(path),
    refetchInterval: 15_000,
    retry: false,
  });
  const ready = data?.items.filter(({ expiresAt }) => new Date(String(expiresAt)) > new Date()) ?? [];
  return (
    <Panel
      title={title}
      aside={<Actions acts={[{ name: order, given, initial: { language: 'en' }, effect }]} />}
    >
      <Text size="sm" className="quiet" px="var(--edge)" pb="md">
        {how}
      </Text>
      {ready.length > 0 && (
        <ul className="plain-list">
          {ready.map((sheets) => (
            <li key={String(sheets['id'])} className="line">
              <span>
                {texts.sheetsOf(String(sheets['orderedBy']))}
                <small className="quiet">
                  {`${word(String(sheets['language']))}, ${texts.until(format.time(String(sheets['expiresAt'])))}`}
                </small>
              </span>
              {sheets['isMine'] === true && (
                <Actions acts={[{ name: 'sheets.download', given: { id: String(sheets['id']) }, effect }]} />
              )}
            </li>
          ))}
        </ul>
      )}
    </Panel>
  );
}
