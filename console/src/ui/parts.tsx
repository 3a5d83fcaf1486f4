import { Alert, Anchor, Button, Group, Loader, Skeleton, Stack, Text, Title } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { createContext, type FormEvent, type ReactNode, use, useEffect } from 'react';
import { ApiProblem, type Fault } from '../api.ts';
import { useLanguage, useTexts } from '../i18n/index.tsx';
import { useFormat } from './format.ts';
import { isDay, isTime } from './format-of.ts';
import { useWords } from './words.ts';

/** The name of a part of the page. What has no name of its own has that of its part, or of the page. */
export const PartName = createContext<string | undefined>(undefined);

export const usePartName = () => {
  const name = use(PartName);
  return name === undefined ? { 'aria-labelledby': 'title' } : { 'aria-label': name };
};

type HeadProps = {
  readonly title: ReactNode;
  /** The title of the browser tab, if the page's title is not a text. */
  readonly name?: string;
  readonly note?: ReactNode;
  /** The list to which the page of one thing belongs. */
  readonly back?: { readonly to: string; readonly label: string };
  readonly children?: ReactNode;
};

/**
 * Returns what a form does when it is submitted: it does not leave the page, and submits no form from which
 * its dialog was opened.
 */
export const submits = (run: () => void) => (event: FormEvent) => {
  event.preventDefault();
  event.stopPropagation();
  run();
};

/** Scrolls as far as an element needs that has just appeared. */
export const intoView = (element: HTMLElement | null) =>
  element?.scrollIntoView({ block: 'nearest', inline: 'nearest' });

/** A form that was refused shows why, and the focus goes to the first field that is wrong. */
const intoForm = (element: HTMLElement | null) => {
  const form = element?.closest('form');
  if (!form) return;
  intoView(element);
  form.querySelector<HTMLElement>('[aria-invalid=true]')?.focus();
};

/** The title of the page that is open; undefined until there was one. */
let announced: string | undefined;

/** Tells a screen reader the title of a page that opens without a load. The first one is read as it is. */
function useAnnounced(title: string): void {
  useEffect(() => {
    const place = document.getElementById('announced');
    if (place && announced !== undefined && announced !== title) place.textContent = title;
    announced = title;
  }, [title]);
}

/** The head of a page: its title and its actions. */
export function Head({ title, name, note, back, children }: HeadProps) {
  const text = name ?? (typeof title === 'string' ? title : (back?.label ?? ''));
  useAnnounced(text);
  return (
    <header className="head">
      <title>{`${text} · Scrip`}</title>
      <div>
        {back && (
          <Anchor component={Link} to={back.to} size="sm" className="quiet" underline="hover">
            ← {back.label}
          </Anchor>
        )}
        <Title order={1} id="title">
          {title}
        </Title>
        {note && (
          <Text className="quiet" size="sm" component="div" mt={2}>
            {note}
          </Text>
        )}
      </div>
      <Group gap={8}>{children}</Group>
    </header>
  );
}

export function Panel({
  title,
  aside,
  padded = false,
  children,
}: {
  title?: string;
  aside?: ReactNode;
  padded?: boolean;
  children: ReactNode;
}) {
  const part = use(PartName);
  return (
    <section className="panel" aria-label={title}>
      {title && (
        <div className="panel-head">
          <Title order={2}>{title}</Title>
          {aside}
        </div>
      )}
      <PartName value={title ?? part}>
        {padded ? <div className="panel-body">{children}</div> : children}
      </PartName>
    </section>
  );
}

/** An important number, with its name. */
export function Stat({
  label,
  children,
  note,
  to,
}: {
  label: string;
  children: ReactNode;
  note?: ReactNode;
  to?: string;
}) {
  return (
    <section className="panel panel-body" aria-label={label}>
      <Text size="sm" className="quiet">
        {to ? (
          <Link to={to} className="quiet-link">
            {label}
          </Link>
        ) : (
          label
        )}
      </Text>
      <div className="stat">{children}</div>
      {note && (
        <Text size="sm" className="quiet" component="div">
          {note}
        </Text>
      )}
    </section>
  );
}

export function Busy() {
  const { loading } = useTexts().list;
  return (
    <Group justify="center" p="xl" role="status" aria-label={loading}>
      <Loader size="sm" />
    </Group>
  );
}

/** A placeholder for the page of one thing while it is read, so that the layout does not jump. */
export function BusyPage() {
  const { loading } = useTexts().list;
  return (
    <Stack role="status" aria-label={loading}>
      <Skeleton h={30} w={280} mb="xs" />
      <div className="two">
        <Skeleton h={320} />
        <Skeleton h={240} />
      </div>
    </Stack>
  );
}

/** What went wrong, what to do, and the id of the request. */
export function Problem({ error, retry }: { error: unknown; retry?: () => void }) {
  const {
    texts: { problem: texts, codes },
    problems,
    faults,
    refusalOf,
    refuse,
  } = useLanguage();
  useEffect(refuse, [refuse]);
  const format = useFormat();
  const { label, word } = useWords();
  const problem = error instanceof ApiProblem ? error : undefined;
  const { roles } = problem ?? {};
  const title = codes[problem?.code ?? ''] ?? texts.title;
  // An answer without a code does not come from the service.
  const isAway = problem?.status === 0 || problem?.code === 'no-answer';
  const text = isAway
    ? texts.noAnswer
    : roles
      ? texts.forbidden(roles.map((role) => word(role)).join(', '))
      : undefined;
  const { message } = error as Error;
  const own = text ?? refusalOf?.(message, (value) => (isTime(value) ? format.time(value) : value));
  const meaning = own ?? problems[problem?.code ?? ''];
  // Faults with facts say all that the message says.
  const isTold = problem?.fields.some(({ rule, facts }) => facts && faults[rule]) ?? false;
  return (
    <Alert color="red" variant="light" title={title} role="alert" ref={intoForm}>
      <Stack gap="xs" align="flex-start">
        {/* Without a meaning, the message only repeats the faults of the fields. */}
        {!isTold && (meaning !== undefined || !problem?.fields.length) && (
          <Text size="sm" className="sentence">
            {meaning ?? message}
          </Text>
        )}
        {problem?.fields.map((fault) => (
          <Text size="sm" key={fault.field}>
            <b>{label(fault.field)}</b> <FaultText of={fault} />
          </Text>
        ))}
        {!problem?.fields.length && meaning !== undefined && own === undefined && (
          <Text size="xs" lang="en" className="sentence">
            {message}
          </Text>
        )}
        {problem?.requestId && (
          <Text size="xs">
            {texts.request} <span className="mono">{problem.requestId}</span>
          </Text>
        )}
        {retry && !roles && (
          <Button variant="default" onClick={retry}>
            {texts.retry}
          </Button>
        )}
      </Stack>
    </Alert>
  );
}

/** The error of a field, in the language of the page if its rule is specific enough. */
export function FaultText({ of: { rule, message, facts = {} } }: { of: Fault }) {
  const { faults } = useLanguage();
  const format = useFormat();
  const { label } = useWords();
  // The service marks the names of other fields.
  const marked = (text: string) => text.replace(/`(\w+)`/g, (_, name: string) => `“${label(name)}”`);
  const words = faults[rule];
  if (words === undefined) return <span lang="en">{marked(message)}</span>;
  if (typeof words === 'string') return words;
  const written = Object.entries(facts).map(([name, fact]) => [
    name,
    isDay(fact) ? format.day(fact) : typeof fact === 'number' ? format.number(fact) : String(fact),
  ]);
  return words(Object.fromEntries(written));
}

type EmptyProps = {
  text: string;
  action?: ReactNode;
  /** A picture of what will be here. */
  icon?: ReactNode;
};

export function Empty({ text, action, icon }: EmptyProps) {
  return (
    <Stack align="center" px="md" py={36} gap="sm">
      {icon && <span className="empty-icon">{icon}</span>}
      <Text className="quiet" size="sm" ta="center" maw={420}>
        {text}
      </Text>
      {action}
    </Stack>
  );
}
