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

/** Shows the page as it was at a time of the past, which is in its address (`at`). */
export function AtField() {
  const { at: texts } = useTexts();
  const change = useChangeFilters();
  const search = useFilters();
  const { at = '' } = search;
  const [typed, setTyped] = useState(localOf(at));
  const show = () => {
    const time = new Date(typed);
    change({ ...search, at: Number.isNaN(time.getTime()) ? undefined : time.toISOString() });
  };
  return (
    <Group gap={8} component="form" wrap="nowrap" onSubmit={submits(show)}>
      <TextInput
        type="datetime-local"
        size="xs"
        aria-label={texts.label}
        title={texts.label}
        value={typed}
        onChange={(event) => setTyped(event.currentTarget.value)}
      />
      <Button type="submit" variant="default">
        {texts.show}
      </Button>
      {at && (
        <Button
          variant="subtle"
          onClick={() => {
            setTyped('');
            change({ ...search, at: undefined });
          }}
        >
          {texts.now}
        </Button>
      )}
    </Group>
  );
}
