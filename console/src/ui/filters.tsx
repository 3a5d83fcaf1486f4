import { Button, Group, Select, TextInput } from '@mantine/core';
import { useState } from 'react';
import type { Field, Operation } from '../described.ts';
import { useLanguage, useTexts } from '../i18n/index.tsx';
import { guess } from '../search.ts';
import { type Filters, useChangeFilters, useFilters } from './address.ts';
import { useFormat } from './format.ts';
import { type Choices, useChoices } from './names.ts';
import { readNumber } from './number.ts';
import { useWords } from './words.ts';

type BarProps = {
  readonly fields: Operation['fields'];
  readonly search: Filters;
  readonly choices?: Choices | undefined;
};

/** The filters of a list. They are part of the address, so a list can be sent to a colleague. */
export function FilterBar({ fields, search, choices = {} }: BarProps) {
  const texts = useTexts().list;
  const change = useChangeFilters();
  // With the tab of the page.
  const address = useFilters();
  const [round, setRound] = useState(0);
  const apply = (changed: Filters) => change({ ...address, ...changed }, { replace: true });
  const isFiltered = fields.some(({ name }) => search[name]);
  return (
    <Group gap={8} component="search" className="filters" key={round}>
      {fields.map((field) => (
        <FilterInput
          key={field.name}
          field={field}
          offered={choices[field.name]}
          value={search[field.name] ?? ''}
          apply={(value) => apply({ [field.name]: value || undefined })}
        />
      ))}
      {isFiltered && (
        <Button
          variant="subtle"
          onClick={() => {
            setRound(round + 1);
            apply(Object.fromEntries(fields.map(({ name }) => [name, undefined])));
          }}
        >
          {texts.clear}
        </Button>
      )}
    </Group>
  );
}

type InputProps = {
  readonly field: Field;
  readonly offered: Choices[string] | undefined;
  readonly value: string;
  apply(value: string): void;
};

function FilterInput({ field, offered, value, apply }: InputProps) {
  const { name, type, format, options } = field;
  const isNumber = type === 'number';
  const { label, word } = useWords();
  const { language } = useLanguage();
  const { exactly } = useFormat();
  const { isSecret } = useTexts().search;
  const written = isNumber && Number(value) ? exactly(value) : value;
  const [typed, setTyped] = useState(written);
  const [note, setNote] = useState<string>();
  const [applied, setApplied] = useState(value);
  // A link to a saved view changes the filters of the same list.
  if (applied !== value) {
    setApplied(value);
    setTyped(written);
  }
  // A code with its PIN must not stand in the address, nor a token.
  const finish = () => {
    const text = typed.trim();
    const found = guess(text);
    const isCode = found?.kind === 'code-with-pin';
    setNote(isCode ? isSecret : undefined);
    if (isCode) setTyped('');
    else if (found?.kind === 'token') apply(found.text);
    else if (text !== value) apply(isNumber ? String(readNumber(text, language) ?? '') : text);
  };
  const title = label(name);
  const named = useChoices(field);
  const choices =
    offered ??
    named ??
    // One that is yes or no is only ever asked for.
    (type === 'boolean' ? ['true'] : options).map((each) => ({ value: each, label: word(each, name) }));
  if (choices.length > 0)
    return (
      <Select
        size="xs"
        w={160}
        aria-label={title}
        placeholder={title}
        clearable
        searchable={choices.length > 8}
        data={choices}
        value={value || null}
        onChange={(chosen) => apply(chosen ?? '')}
      />
    );
  if (format === 'day') {
    const labelWidth = 24 + 7 * title.length;
    return (
      <TextInput
        size="xs"
        type="date"
        w={124 + labelWidth}
        aria-label={title}
        leftSection={<span className="quiet">{title}</span>}
        leftSectionWidth={labelWidth}
        value={value.slice(0, 10)}
        onChange={(event) => apply(event.currentTarget.value)}
      />
    );
  }
  return (
    <TextInput
      size="xs"
      w={note ? 320 : isNumber ? 120 : 160}
      aria-label={title}
      placeholder={title}
      error={note}
      value={typed}
      onChange={(event) => setTyped(event.currentTarget.value)}
      onKeyDown={(event) => event.key === 'Enter' && finish()}
      // The note about a code stays until something else is typed.
      onBlur={() => (typed || !note) && finish()}
    />
  );
}
