import { Button, Group, Select, TextInput } from '@mantine/core';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import type { Operation } from '../described.ts';
import { useTexts } from '../i18n/index.tsx';
import { guess } from '../search.ts';
import { useMerchants } from './merchants.ts';
import { useWords } from './words.ts';

export type Filters = Readonly<Record<string, string | undefined>>;

type Fields = Operation['fields'];

/** The words of a field; one that is yes or no is only ever asked for. */
function optionsOf(fields: Fields, name: string): readonly string[] | undefined {
  const field = fields.find((each) => each.name === name);
  if (field?.type === 'boolean') return ['true'];
  return field && field.options.length > 0 ? field.options : undefined;
}

type BarProps = {
  readonly filters: readonly string[];
  readonly fields: Fields;
  readonly search: Filters;
};

/** The filters of a list. They are part of the address, so a list can be sent to a colleague. */
export function FilterBar({ filters, fields, search }: BarProps) {
  const texts = useTexts().list;
  const navigate = useNavigate();
  const [round, setRound] = useState(0);
  const apply = (changed: Filters) => {
    const next = Object.fromEntries(Object.entries({ ...search, ...changed }).filter(([, value]) => value));
    void navigate({ to: '.', search: next as never, replace: true });
  };
  const isFiltered = filters.some((name) => search[name]);
  return (
    <Group gap={8} component="search" className="filters" key={round}>
      {filters.map((name) => (
        <FilterInput
          key={name}
          name={name}
          options={optionsOf(fields, name)}
          value={search[name] ?? ''}
          apply={(value) => apply({ [name]: value || undefined })}
        />
      ))}
      {isFiltered && (
        <Button
          variant="subtle"
          onClick={() => {
            setRound(round + 1);
            apply(Object.fromEntries(filters.map((name) => [name, undefined])));
          }}
        >
          {texts.clear}
        </Button>
      )}
    </Group>
  );
}

type InputProps = {
  readonly name: string;
  readonly options: readonly string[] | undefined;
  readonly value: string;
  apply(value: string): void;
};

function FilterInput({ name, options, value, apply }: InputProps) {
  const { label, word } = useWords();
  const { merchants } = useMerchants();
  const { isSecret } = useTexts().search;
  const [typed, setTyped] = useState(value);
  const [note, setNote] = useState<string>();
  // A code with its PIN must not stand in the address.
  const finish = () => {
    const text = typed.trim();
    const isCode = guess(text)?.kind === 'code-with-pin';
    setNote(isCode ? isSecret : undefined);
    if (isCode) setTyped('');
    else if (text !== value) apply(text);
  };
  const title = label(name);
  const choices =
    name === 'merchantId' && merchants.length > 0
      ? merchants.map((each) => ({ value: each.id, label: each.name }))
      : options?.map((option) => ({ value: option, label: word(option, name) }));
  if (choices)
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
  if (name === 'from' || name === 'to')
    return (
      <TextInput
        size="xs"
        type="date"
        w={176}
        aria-label={title}
        leftSection={<span className="quiet">{title}</span>}
        leftSectionWidth={52}
        value={value.slice(0, 10)}
        onChange={(event) => apply(event.currentTarget.value)}
      />
    );
  return (
    <TextInput
      size="xs"
      w={note ? 320 : 160}
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
