import { Stack, Text } from '@mantine/core';
import { useTexts } from '../i18n/index.tsx';
import { useApp } from './app.tsx';
import { isDay, isTime, useFormat } from './format.ts';
import { useMerchants, useUsers } from './names.ts';
import { Copyable } from './value.tsx';
import { useWords } from './words.ts';

/** A change as the audit records it. */
export type Change = {
  readonly action: string;
  readonly subject: string;
  readonly before: unknown;
  readonly after: unknown;
};

type Thing = Readonly<Record<string, unknown>>;
/** A field that is empty and did not exist before has not changed. */
const isNothing = (...values: readonly unknown[]) =>
  values.every(
    (value) => value === undefined || value === null || (Array.isArray(value) && value.length === 0),
  );
export const fieldsOf = (value: unknown): Thing =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Thing) : {};

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** The ids of bookings say nothing about a change, and those of a proposal do not exist yet. */
const withoutIds = (value: unknown): Thing =>
  Object.fromEntries(Object.entries(fieldsOf(value)).filter(([, each]) => !UUID.test(String(each))));

/** Changes in words: the old value and the new one. */
export function Changes({ of }: { of: readonly Change[] }) {
  const words = useWords();
  return (
    <Stack gap="xs">
      {of.map(({ action, subject, before, after }) => (
        <div key={`${action} ${subject}`}>
          {subject && (
            <Text size="sm" fw={500} mb={4}>
              {words.action(action).label} · <Subject of={subject} within={after} />
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

/**
 * `merchant 5` → Merchant Kyoto Tea House.
 * @param within a change of it, which may contain a name: the number of a settlement
 */
export function Subject({ of, within }: { of: string; within?: unknown }) {
  const { noun } = useWords();
  const { nameOf } = useMerchants();
  const { emailOf } = useUsers();
  const [, kind = '', id = ''] = /^(bank account|\S+) (.+)$/.exec(of) ?? [];
  if (id === '') return <span className="mono">{of}</span>;
  const { number, email } = fieldsOf(within);
  const known = kind === 'settlement' ? number : kind === 'user' ? (emailOf(id) ?? email) : undefined;
  const named = kind === 'merchant' ? nameOf(id) : kind === 'bank account' ? id : undefined;
  const name = typeof known === 'string' ? known : named;
  return (
    <>
      {noun(kind)}{' '}
      {name ? (
        <bdi>{name}</bdi>
      ) : (
        <span className="mono" title={id}>
          {id.length > ID_MAX ? `${id.slice(0, ID_SHOWN)}…` : id}
        </span>
      )}
    </>
  );
}

const PERCENT_PPM = 10_000;
const MONEY_TEXT = /^([A-Z]{3}) (-?\d+(?:\.\d+)?)$/;

/** Shows a value as text: an amount with its currency, parts per million as percent, an id by its name. */
export function useShown() {
  const words = useWords();
  const format = useFormat();
  const { yes, no } = useTexts().list;
  const { nameOf } = useMerchants();
  const { shapeOf } = useApp();
  const shown = (name: string, value: unknown, currency?: unknown): string => {
    if (value === null || value === undefined || value === '') return '–';
    if (name.endsWith('Ppm')) return format.percent(String(Number(value) / PERCENT_PPM));
    const { isMoney, isKnown, format: what, words: list } = shapeOf(name);
    if (isMoney && !Number.isNaN(Number(value)))
      return typeof currency === 'string'
        ? `${format.money(Number(value), currency)}`
        : format.exactly(String(value));
    if (what === 'merchant') return nameOf(String(value)) ?? String(value);
    if (isTime(value)) return format.time(value);
    if (isDay(value)) return format.day(value);
    if (typeof value === 'boolean') return value ? yes : no;
    if (typeof value === 'number') return format.number(value);
    const [, code, amount] = MONEY_TEXT.exec(String(value)) ?? [];
    if (code && amount) return `${format.money(Number(amount), code)}`;
    if (Array.isArray(value)) return value.map((each) => shown(name, each, currency)).join(', ') || '–';
    if (typeof value === 'object')
      return Object.entries(value)
        .map(([part, each]) => `${words.label(part)}: ${shown(part, each, currency)}`)
        .join(', ');
    // A text of a person is no word of the API.
    return isKnown && list.length === 0 ? String(value) : words.word(String(value), name);
  };
  return shown;
}

/** The fields that differ, each as text. */
function useDifference(others?: unknown) {
  const words = useWords();
  const show = useShown();
  return (before: unknown, after: unknown) => {
    const [old, now] = [fieldsOf(before), fieldsOf(after)];
    const currency = now['currency'] ?? old['currency'] ?? others;
    const names = [...new Set([...Object.keys(old), ...Object.keys(now)])].filter(
      (name) => JSON.stringify(old[name]) !== JSON.stringify(now[name]) && !isNothing(now[name], old[name]),
    );
    return names.map((name) => ({
      name,
      label: words.label(name.replace(/Ppm$/, '')),
      old: name in old ? show(name, old[name], currency) : undefined,
      now: show(name, now[name], currency),
    }));
  };
}

type DifferenceProps = { before: unknown; after: unknown; currency?: unknown };

/** @param currency of amounts, if neither side names it */
export function Difference({ before, after, currency }: DifferenceProps) {
  return (
    <dl className="change" data-recorded="">
      {useDifference(currency)(before, after).map(({ name, label, old, now }) => (
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
  const text = useDifference()(withoutIds(before), withoutIds(after))
    .map(({ label, old, now }) => `${label}: ${old === undefined ? now : `${old} → ${now}`}`)
    .join(' · ');
  return (
    <span className="long quiet anywhere" title={text} data-recorded="">
      {text || '–'}
    </span>
  );
}
