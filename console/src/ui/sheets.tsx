import { Text } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import type { Listed } from '../answers.ts';
import { useTexts } from '../i18n/index.tsx';
import type { Input } from './act.ts';
import { Actions } from './actions.tsx';
import { useFormat } from './format.ts';
import { useItems } from './items.ts';
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
  const { approvals } = useTexts();
  const sheets = useItems(path, { refetchMs: 15_000 });
  // What was proposed and is not approved yet.
  const proposed = useItems<Listed<'approval.list'>>('/approvals', {
    query: { waiting: true, limit: 200 },
    refetchMs: 15_000,
  })?.filter(
    ({ operation, input }) =>
      operation === order && Object.entries(given).every(([name, value]) => input[name] === value),
  );
  const ready = sheets?.filter(({ expiresAt }) => new Date(String(expiresAt)) > new Date()) ?? [];
  return (
    <Panel
      title={title}
      aside={<Actions acts={[{ name: order, given, initial: { language: 'en' }, effect }]} />}
    >
      <Text size="sm" className="quiet" px="var(--edge)" pb="md">
        {how}
      </Text>
      {(ready.length > 0 || (proposed && proposed.length > 0)) && (
        <ul className="plain-list">
          {proposed?.map(({ id, maker, expiresAt }) => (
            <li key={`proposal ${id}`} className="line">
              <span>
                {texts.sheetsOf(maker.name)}
                <small className="quiet">{texts.proposedUntil(format.time(expiresAt))}</small>
              </span>
              <Link to={`/approvals/${id}`}>{approvals.waiting}</Link>
            </li>
          ))}
          {ready.map((each) => (
            <li key={String(each['id'])} className="line">
              <span>
                {texts.sheetsOf(String(each['orderedBy']))}
                <small className="quiet">
                  {`${word(String(each['language']))}, ${texts.until(format.time(String(each['expiresAt'])))}`}
                </small>
              </span>
              {each['isMine'] === true && (
                <Actions acts={[{ name: 'sheets.download', given: { id: String(each['id']) }, effect }]} />
              )}
            </li>
          ))}
        </ul>
      )}
    </Panel>
  );
}
