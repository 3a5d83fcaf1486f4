import { Checkbox, NumberInput, Select, TextInput } from '@mantine/core';
import type { Field } from '../operations.ts';
import { labelOf } from './format.ts';

type FieldProps = {
  field: Field;
  value: unknown;
  problem?: string | undefined;
  onChange(value: unknown): void;
};

/** The input of a field of an operation, by its type. */
export function FieldInput({ field, value, problem, onChange }: FieldProps) {
  const label = labelOf(field.name);
  const shared = {
    label,
    description: field.description || undefined,
    error: problem,
    required: field.required,
  };
  if (field.options.length > 0)
    return (
      <Select
        {...shared}
        data={[...field.options]}
        value={(value as string) ?? null}
        onChange={(chosen) => onChange(chosen ?? undefined)}
      />
    );
  if (field.type === 'boolean')
    return (
      <Checkbox
        label={label}
        description={field.description || undefined}
        checked={value === true}
        onChange={(event) => onChange(event.currentTarget.checked)}
      />
    );
  if (field.type === 'number' || field.type === 'integer')
    return (
      <NumberInput
        {...shared}
        value={(value as number) ?? ''}
        placeholder={field.example}
        allowDecimal={field.type === 'number'}
        onChange={(given) => onChange(given === '' ? undefined : Number(given))}
      />
    );
  if (field.type === 'array')
    return (
      <TextInput
        {...shared}
        value={((value as string[]) ?? []).join(', ')}
        placeholder={field.example}
        onChange={(event) =>
          onChange(
            event.currentTarget.value
              .split(',')
              .map((each) => each.trim())
              .filter(Boolean),
          )
        }
      />
    );
  return (
    <TextInput
      {...shared}
      value={(value as string) ?? ''}
      placeholder={field.example}
      autoComplete="off"
      onChange={(event) => onChange(event.currentTarget.value === '' ? undefined : event.currentTarget.value)}
    />
  );
}
