import { Stack, Text } from '@mantine/core';
import { useLanguage } from '../i18n/index.tsx';
import { useApp } from './app.tsx';
import { rowsOf, subjectOf, UUID, valuesIn, type Writing, withoutIds } from './change-rows.ts';
import { useMerchants, useProductNames, useUsers } from './names.ts';
import { Copyable } from './value.tsx';
import { useLabels, useWords } from './words.ts';

/** A change as the audit records it. */
export type Change = {
  readonly action: string;
  readonly subject: string;
  readonly before: unknown;
  readonly after: unknown;
};

/** Changes in words: the old value and the new one. */
export function Changes({ of }: { of: readonly Change[] }) {
  const words = useWords();
  return (
    <Stack gap="xs">
      {of.map(({ action, subject, before, after }) => (
        <div key={`${action} ${subject}`}>
          {subject && (
            <Text size="sm" fw={500} mb={4}>
              {words.action(action)} · <Subject of={subject} within={after} />
            </Text>
          )}
          <Difference before={withoutIds(before)} after={withoutIds(after)} />
        </div>
      ))}
    </Stack>
  );
}

const ID_MAX = 24;
const ID_SHOWN = 12;

/** The subject of a change by its name. @param within a change of it, which may contain the name */
export function Subject({ of, within }: { of: string; within?: unknown }) {
  const { noun, name, id } = subjectOf(useWriting(), of, within);
  return (
    <>
      {noun}{' '}
      {name ? (
        <bdi title={id}>{name}</bdi>
      ) : (
        <span className="mono" title={id}>
          {id.length > ID_MAX ? `${id.slice(0, ID_SHOWN)}…` : id}
        </span>
      )}
    </>
  );
}

/** What changes are written with, in the language of the page. */
function useWriting(): Writing {
  const { texts, language } = useLanguage();
  const { shapeOf } = useApp();
  const { nameOf: merchantOf } = useMerchants();
  const { emailOf } = useUsers();
  const productOf = useProductNames();
  const named = { merchant: merchantOf, product: productOf, user: emailOf };
  const labels = useLabels();
  return { texts, labels, language, shapeOf, nameOf: (kind, id) => named[kind](id) };
}

/** Writes the value of a field as text. */
export const useShown = () => valuesIn(useWriting());

type DifferenceProps = { before: unknown; after: unknown; currency?: unknown };

/** @param currency of amounts, if neither side names it */
export function Difference({ before, after, currency }: DifferenceProps) {
  return (
    <dl className="change" data-recorded="">
      {rowsOf(useWriting(), before, after, currency).map(({ name, label, old, now }) => (
        <div key={name} style={{ display: 'contents' }}>
          <dt>{label}</dt>
          <dd>
            {old !== undefined && (
              <>
                <s className="quiet">{old}</s> →{' '}
              </>
            )}
            <b>{UUID.test(now) ? <Copyable text={now} shown={`${now.slice(0, ID_SHOWN)}…`} /> : now}</b>
          </dd>
        </div>
      ))}
    </dl>
  );
}

/** The same on a line or two, for a list. */
export function ShortDifference({ before, after }: { before: unknown; after: unknown }) {
  const text = rowsOf(useWriting(), withoutIds(before), withoutIds(after))
    .map(({ label, old, now }) => `${label}: ${old === undefined ? now : `${old} → ${now}`}`)
    .join(' · ');
  return (
    <span className="long quiet anywhere" title={text} data-recorded="">
      {text || '–'}
    </span>
  );
}
