import './dialog-styles.ts';
import { Checkbox, FileInput, Select, SimpleGrid, Textarea, TextInput } from '@mantine/core';
import { type ReactNode, useState } from 'react';
import { help } from '../../generated/help.ts';
import { type Fault, toBase64 } from '../api.ts';
import type { Field } from '../described.ts';
import { hints } from '../i18n/de.hints.ts';
import { type Language, useLanguage, useTexts } from '../i18n/index.tsx';
import { decode } from './csv-table.ts';
import { useFormat } from './format.ts';
import { useChoices } from './names.ts';
import { readNumber } from './number.ts';
import { FaultText } from './parts.tsx';
import { useWords } from './words.ts';

type FieldProps = {
  operation: string;
  field: Field;
  value: unknown;
  problem?: Fault | undefined;
  onChange(value: unknown): void;
};

/** English hints are the descriptions of the schemas; German ones serve fields of one name. */
const hintOf: Readonly<Record<Language, (operation: string, field: string) => string | undefined>> = {
  en: (operation, field) => help[`${operation}.${field}`],
  de: (operation, field) => hints[`${operation}.${field}`] ?? hints[field],
};

/** What an operation does; undefined if its name says it. */
export const textOf = (operation: string, language: Language) =>
  (language === 'de' && hints[operation]) || (help[operation] && `${help[operation]}.`);

/** The length from which a text gets several lines. */
const LONG = 500;

/** The input of a field of an operation, by its schema. */
export function FieldInput({ operation, field, value, problem, onChange }: FieldProps) {
  const { label, word } = useWords();
  const { language } = useLanguage();
  const { name, type, options } = field;
  const shared = {
    label: label(name),
    description: hintOf[language](operation, name),
    error: problem && <FaultText of={problem} />,
    required: field.required && !field.nullable,
  };
  const choices = useChoices(field) ?? options.map((each) => ({ value: each, label: word(each, name) }));
  if (type === 'array' && options.length > 0)
    return (
      <Checkbox.Group
        {...shared}
        value={(value as string[]) ?? []}
        onChange={(chosen) => onChange(chosen.length > 0 ? chosen : undefined)}
      >
        <SimpleGrid cols={2} spacing="xs" mt={8}>
          {choices.map((each) => (
            <Checkbox key={each.value} value={each.value} label={each.label} size="sm" />
          ))}
        </SimpleGrid>
      </Checkbox.Group>
    );
  if (choices.length > 0)
    return (
      <Select
        {...shared}
        searchable={choices.length > 8}
        clearable={!shared.required}
        placeholder={choices.find((each) => each.value === field.default)?.label ?? ''}
        data={choices}
        value={(value as string) ?? null}
        onChange={(chosen) => onChange(chosen ?? undefined)}
      />
    );
  if (type === 'boolean')
    return (
      <Checkbox
        label={shared.label}
        description={shared.description}
        error={shared.error}
        checked={value === true}
        onChange={(event) => onChange(event.currentTarget.checked)}
      />
    );
  if (type === 'number' || type === 'integer')
    return (
      <NumberText
        {...shared}
        isWhole={type === 'integer'}
        placeholder={field.default}
        value={value}
        onChange={onChange}
      />
    );
  // A list that a command reads from a file is typed here.
  if (field.file === 'base64')
    return (
      <FileInput
        {...shared}
        onChange={async (chosen) =>
          onChange(chosen ? toBase64(new Uint8Array(await chosen.arrayBuffer())) : undefined)
        }
      />
    );
  if (field.file && type !== 'array') return <TextFile {...shared} value={value} onChange={onChange} />;
  if (type === 'array' || (field.maxLength ?? 0) >= LONG)
    return <Lines {...shared} isList={type === 'array'} value={value} onChange={onChange} />;
  return (
    <TextInput
      {...shared}
      type={field.format === 'day' ? 'date' : name === 'email' ? 'email' : 'text'}
      value={(value as string) ?? ''}
      autoComplete="off"
      onChange={(event) => onChange(event.currentTarget.value === '' ? undefined : event.currentTarget.value)}
    />
  );
}

type SharedProps = Pick<FieldProps, 'value' | 'onChange'> & {
  label: string;
  description?: string | undefined;
  error?: ReactNode;
  required?: boolean | undefined;
};
type TextProps = SharedProps & { isList: boolean };
type NumberProps = SharedProps & { isWhole: boolean; placeholder: Field['default'] };

/** A number as it was typed. When the field loses the focus, it shows how the number was understood. */
function NumberText({ isWhole, placeholder, value, onChange, ...shared }: NumberProps) {
  const { language } = useLanguage();
  const { exactly } = useFormat();
  const written = (given: unknown) =>
    typeof given === 'number' ? exactly(String(given)) : String(given ?? '');
  const [typed, setTyped] = useState(written(value));
  const isOwn = readNumber(typed, language, isWhole) === value;
  return (
    <TextInput
      {...shared}
      placeholder={written(placeholder)}
      inputMode={isWhole ? 'numeric' : 'decimal'}
      autoComplete="off"
      value={isOwn ? typed : written(value)}
      onChange={({ currentTarget: { value: next } }) => {
        setTyped(next);
        onChange(readNumber(next, language, isWhole));
      }}
      onBlur={() => setTyped(written(value))}
    />
  );
}

/** A text file, in any encoding in which a spreadsheet saves it. */
function TextFile({ value, onChange, ...shared }: SharedProps) {
  const texts = useTexts().portal;
  const [isOther, setOther] = useState(false);
  return (
    <FileInput
      {...shared}
      error={isOther ? texts.notCsv : shared.error}
      accept=".csv,text/csv"
      onChange={async (chosen) => {
        const text = chosen && decode(new Uint8Array(await chosen.arrayBuffer()));
        setOther(chosen !== null && text === undefined);
        onChange(text ?? undefined);
      }}
    />
  );
}

/** Several lines: a text, or one entry per line. */
function Lines({ isList, value, onChange, description, ...shared }: TextProps) {
  const { onePerLine } = useTexts().list;
  const hints = [description, isList && onePerLine].filter(Boolean);
  const text = isList ? ((value as string[]) ?? []).join('\n') : ((value as string) ?? '');
  return (
    <Textarea
      {...shared}
      description={hints.length > 0 && hints.join(' ')}
      autosize
      minRows={isList ? 3 : 2}
      maxRows={12}
      value={text}
      onChange={({ currentTarget: { value: typed } }) => {
        if (typed === '') return onChange(undefined);
        // A line may be empty while somebody types. Empty lines are not sent.
        onChange(isList ? typed.split('\n').map((line) => line.trimStart()) : typed);
      }}
    />
  );
}
