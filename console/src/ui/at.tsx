import { Button, Group, TextInput } from '@mantine/core';
import { useState } from 'react';
import { useTexts } from '../i18n/index.tsx';
import { useChangeFilters, useFilters } from './address.ts';
import { submits } from './parts.tsx';

/** The time of an instant as an input of the browser has it: without a zone, which is that of the browser. */
function localOf(at: string): string {
  const time = new Date(at);
  if (Number.isNaN(time.getTime())) return '';
  return new Date(time.getTime() - time.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

type InputProps = { readonly at: string; readonly label?: string; set(at: string | undefined): void };

/** A time of the past, typed in the zone of the browser. @param label above it; otherwise it is inside */
export function AtInput({ at, label, set }: InputProps) {
  const { at: texts } = useTexts();
  const [typed, setTyped] = useState(localOf(at));
  const [shown, setShown] = useState(at);
  // It follows the address of the page.
  if (shown !== at) {
    setShown(at);
    setTyped(localOf(at));
  }
  const change = (text: string) => {
    setTyped(text);
    const time = new Date(text);
    set(Number.isNaN(time.getTime()) ? undefined : time.toISOString());
  };
  const width = 24 + 7 * texts.label.length;
  const inside = { 'aria-label': texts.label, leftSectionWidth: width, w: 184 + width, maw: '100%' };
  return (
    <TextInput
      type="datetime-local"
      size="xs"
      {...(label === undefined
        ? { ...inside, leftSection: <span className="quiet">{texts.label}</span> }
        : { label })}
      value={typed}
      onChange={(event) => change(event.currentTarget.value)}
    />
  );
}

/** Shows the page as it was at a time of the past, which is in its address (`at`). */
export function AtField() {
  const { at: texts } = useTexts();
  const change = useChangeFilters();
  const search = useFilters();
  const { at = '' } = search;
  const [typed, setTyped] = useState<string | undefined>(at);
  const show = () => change({ ...search, at: typed || undefined });
  return (
    <Group gap={8} component="form" onSubmit={submits(show)}>
      <AtInput at={at} set={setTyped} />
      {(typed ?? '') !== at && (
        <Button type="submit" variant="default">
          {texts.show}
        </Button>
      )}
      {at && (
        <Button
          variant="subtle"
          onClick={() => {
            setTyped(undefined);
            change({ ...search, at: undefined });
          }}
        >
          {texts.now}
        </Button>
      )}
    </Group>
  );
}
