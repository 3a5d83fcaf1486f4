import { Alert, Button, Group, TextInput } from '@mantine/core';
import { type ReactNode, useEffect, useRef, useState } from 'react';
import { ApiProblem } from '../api.ts';
import { submits } from '../ui/parts.tsx';
import { PasswordField } from '../ui/password.tsx';
import { useValues } from '../ui/values.ts';
import { Camera } from './camera.tsx';
import { type Read, readCard } from './card.ts';
import type { CodeAndPin, Given } from './sales.ts';
import { useTillTexts } from './texts.ts';

type Props<Taken extends Given> = {
  readonly button: string;
  readonly isPending?: boolean;
  /** Takes a card; if its promise is rejected, the card has to be typed again. */
  onCard(card: Taken): Promise<unknown>;
  readonly children?: ReactNode;
};
type AnyProps =
  | (Props<CodeAndPin> & { readonly takesSerial?: false })
  /** A serial number is enough. */
  | (Props<Given> & { readonly takesSerial: boolean });

/**
 * A card: typed, pasted, or scanned by a scanner that types. One bar code of a card has the code, and its QR
 * code also the PIN. A card that has to be activated has another one, of its serial number.
 */
export function CardForm({ button, isPending, takesSerial = false, onCard, children }: AnyProps) {
  const texts = useTillTexts();
  const code = useRef<HTMLInputElement>(null);
  const pin = useRef<HTMLInputElement>(null);
  const { values, setValues, inputOf } = useValues({ code: '', pin: '' });
  const [fault, setFault] = useState<string>();
  const [isWatching, setWatching] = useState(false);
  useDigits(code);

  const refuse = (read: Read) => {
    if ('serialNumber' in read) setFault(texts.onlySerial);
    else if ('digits' in read)
      setFault(read.digits === undefined ? texts.notDigits : texts.otherDigits(read.digits));
    setValues({ code: '', pin: '' });
    code.current?.focus();
  };
  const hand = async (card: Given) => {
    try {
      await (onCard as (card: Given) => Promise<unknown>)(card);
      setValues({ code: '', pin: '' });
      code.current?.focus();
    } catch (error) {
      const isWrongPin = error instanceof ApiProblem && error.code === '55';
      setValues({ code: 'code' in card ? card.code : '', pin: '' });
      const field = isWrongPin ? pin : code;
      field.current?.focus();
      // The next scan takes the place of this one.
      field.current?.select();
    }
  };
  const take = (text: string) => {
    const read = readCard(text);
    setFault(undefined);
    if ('serialNumber' in read && takesSerial) return void hand(read);
    if (!('code' in read)) return refuse(read);
    const typed = read.pin ?? values.pin;
    setValues({ code: read.code, pin: typed });
    if (/^[0-9]{4}$/.test(typed)) return void hand({ code: read.code, pin: typed });
    pin.current?.focus();
  };
  return (
    <form onSubmit={submits(() => take(values.code))}>
      <Group align="flex-end" gap={8}>
        <TextInput
          ref={code}
          label={takesSerial ? texts.codeOrSerial : texts.code}
          required
          withAsterisk={false}
          inputMode="numeric"
          autoComplete="off"
          maxLength={200}
          data-autofocus
          autoFocus
          flex="1 1 180px"
          {...inputOf('code')}
        />
        <PasswordField
          ref={pin}
          label={texts.pin}
          inputMode="numeric"
          autoComplete="off"
          pattern="[0-9]{4}"
          maxLength={4}
          w={130}
          {...inputOf('pin')}
        />
        <Button type="submit" size="sm" loading={isPending}>
          {button}
        </Button>
        <Button variant="default" size="sm" onClick={() => setWatching(true)}>
          {texts.camera}
        </Button>
      </Group>
      {fault && (
        <Alert color="red" variant="light" role="alert" mt="md">
          {fault}
        </Alert>
      )}
      {children}
      {isWatching && (
        <Camera
          onRead={(text) => {
            setWatching(false);
            take(text);
          }}
          onClose={() => setWatching(false)}
        />
      )}
    </form>
  );
}

/** A digit that is typed outside of a field begins the next card: a scanner does not know where the focus is. */
function useDigits(field: { readonly current: HTMLInputElement | null }): void {
  useEffect(() => {
    const begin = ({ key, target }: KeyboardEvent) => {
      const isField =
        target instanceof Element && target.closest('input:not([type=radio]), textarea, [role=dialog]');
      if (/^[0-9]$/.test(key) && !isField) field.current?.focus();
    };
    document.addEventListener('keydown', begin);
    return () => document.removeEventListener('keydown', begin);
  }, [field]);
}
