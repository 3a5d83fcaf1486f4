import { NativeSelect } from '@mantine/core';

type Props = {
  readonly label: string;
  readonly merchants: readonly { readonly id: string; readonly name: string }[];
  readonly value: string;
  onChange(id: string): void;
};

/** Asks for the merchant of a person who has the same password at several. Few are asked: it loads late. */
export function MerchantSelect({ label, merchants, value, onChange }: Props) {
  return (
    <NativeSelect
      label={label}
      required
      autoFocus
      data={[{ value: '', label: '' }, ...merchants.map(({ id, name }) => ({ value: id, label: name }))]}
      value={value}
      onChange={(event) => onChange(event.currentTarget.value)}
    />
  );
}
