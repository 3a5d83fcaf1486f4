import { Alert, Badge, Button, Code, Group, Loader, Stack, Text, Title } from '@mantine/core';
import type { ReactNode } from 'react';
import { ApiProblem } from '../api.ts';
import { useTexts } from '../i18n/index.tsx';
import { isTime, labelOf, useFormat } from './format.ts';

/** The head of a page: what it is, and what can be done on it. */
export function Head({
  title,
  note,
  children,
}: {
  title: ReactNode;
  note?: ReactNode;
  children?: ReactNode;
}) {
  return (
    <Group justify="space-between" align="flex-start" mb="md" gap="md">
      <div>
        <Title order={1}>{title}</Title>
        {note && (
          <Text className="quiet" size="sm" mt={2}>
            {note}
          </Text>
        )}
      </div>
      <Group gap="xs">{children}</Group>
    </Group>
  );
}

export function Panel({
  title,
  aside,
  children,
}: {
  title?: string;
  aside?: ReactNode;
  children: ReactNode;
}) {
  return (
    <section className="panel" aria-label={title}>
      {title && (
        <Group justify="space-between" px="md" pt="sm" pb={4}>
          <Title order={2}>{title}</Title>
          {aside}
        </Group>
      )}
      <div>{children}</div>
    </section>
  );
}

const COLORS: Readonly<Record<string, string>> = {
  ACTIVE: 'teal',
  COMPLETED: 'teal',
  DELIVERED: 'teal',
  closed: 'teal',
  PAID: 'teal',
  approved: 'teal',
  done: 'teal',
  PROCESSING: 'blue',
  PENDING: 'blue',
  INACTIVE: 'gray',
  open: 'blue',
  DRAFT: 'gray',
  APPROVED: 'blue',
  proposed: 'blue',
  REDEEMED: 'gray',
  EXPIRED: 'orange',
  BLOCKED: 'red',
  CANCELED: 'gray',
  REPLACED: 'gray',
  FAILED: 'red',
  RETURNED: 'red',
};

/** A state by its name and a color: never by the color alone. */
export function State({ name }: { name: string }) {
  return (
    <Badge
      className="state"
      variant="light"
      color={COLORS[name] ?? 'gray'}
      radius="sm"
      tt="none"
      fw={500}
      miw="max-content"
      autoContrast
    >
      {name}
    </Badge>
  );
}

export function Busy() {
  return (
    <Group justify="center" p="xl" role="status" aria-label="…">
      <Loader size="sm" />
    </Group>
  );
}

/** What went wrong, what to do, and the id of the request. */
export function Problem({ error, retry }: { error: unknown; retry?: () => void }) {
  const texts = useTexts().problem;
  const problem = error instanceof ApiProblem ? error : undefined;
  const text =
    problem?.status === 0 ? texts.noAnswer : problem?.status === 401 ? texts.ended : (error as Error).message;
  return (
    <Alert color="red" variant="light" title={texts.title} role="alert">
      <Stack gap="xs" align="flex-start">
        <Text size="sm">{text}</Text>
        {problem?.fields.map(({ field, message }) => (
          <Text size="sm" key={field}>
            <Code>{field}</Code> {message}
          </Text>
        ))}
        {problem?.requestId && (
          <Text size="xs" className="quiet">
            {texts.request} <span className="mono">{problem.requestId}</span>
          </Text>
        )}
        {retry && (
          <Button size="xs" variant="default" onClick={retry}>
            {texts.retry}
          </Button>
        )}
      </Stack>
    </Alert>
  );
}

/** A value of the API as people read it. */
export function Value({
  name,
  value,
  currency,
}: {
  name: string;
  value: unknown;
  currency?: string | undefined;
}): ReactNode {
  const format = useFormat();
  if (value === null || value === undefined || value === '') return <span className="quiet">–</span>;
  if (typeof value === 'boolean') return value ? '✓' : '–';
  if (/^(state|status)$/.test(name)) return <State name={String(value)} />;
  if (isTime(value)) return <time dateTime={value}>{format.time(value)}</time>;
  if (typeof value === 'number')
    return currency && isMoney(name) ? format.money(value, currency) : format.number(value);
  if (Array.isArray(value))
    return value.map((each) => (typeof each === 'object' ? JSON.stringify(each) : String(each))).join(', ');
  if (typeof value === 'object') return <Code block>{JSON.stringify(value, null, 2)}</Code>;
  return isIdentifier(name) ? <span className="mono">{String(value)}</span> : String(value);
}

const isMoney = (name: string) =>
  /amount|balance|value|reserved|total|net|fee|below|outstanding|opening|closing/i.test(name);
const isIdentifier = (name: string) =>
  /(id|serialNumber|voucherCode|reference|hash|batch|url|replacedBy)$/i.test(name);

/** The fields of one thing. */
export function Fields({
  of,
  leaveOut = [],
}: {
  of: Readonly<Record<string, unknown>>;
  leaveOut?: readonly string[];
}) {
  const currency = typeof of['currency'] === 'string' ? of['currency'] : undefined;
  return (
    <dl className="fields">
      {Object.entries(of)
        .filter(([name]) => !leaveOut.includes(name))
        .map(([name, value]) => (
          <div key={name} style={{ display: 'contents' }}>
            <dt>{labelOf(name)}</dt>
            <dd>
              <Value name={name} value={value} currency={currency} />
            </dd>
          </div>
        ))}
    </dl>
  );
}

export function Empty({ text, action }: { text: string; action?: ReactNode }) {
  return (
    <Stack align="center" p="xl" gap="sm">
      <Text className="quiet">{text}</Text>
      {action}
    </Stack>
  );
}
