import { Button, Group, PasswordInput, Stack, TextInput } from '@mantine/core';
import { type FormEvent, useState } from 'react';
import { send } from '../api.ts';
import { useTexts } from '../i18n/index.tsx';
import { Fields, Head, Panel, Problem } from '../ui/parts.tsx';

/** A voucher's balance, by code and PIN, under the same guard as at a till. Neither is kept after the answer. */
export function Screen() {
  const texts = useTexts().portal;
  const [values, setValues] = useState({ code: '', pin: '' });
  const [error, setError] = useState<unknown>();
  const [answer, setAnswer] = useState<Record<string, unknown>>();
  const check = async (event: FormEvent) => {
    event.preventDefault();
    setError(undefined);
    setAnswer(undefined);
    try {
      setAnswer(
        await send('POST', '/vouchers/check', {
          body: { code: values.code.replace(/\s/g, ''), pin: values.pin },
        }),
      );
      setValues({ code: '', pin: '' });
    } catch (caught) {
      setError(caught);
    }
  };
  return (
    <>
      <Head title={texts.check} />
      <Stack>
        <Panel>
          <form onSubmit={check}>
            <Group p="md" align="flex-end">
              <TextInput
                label={texts.code}
                required
                inputMode="numeric"
                autoComplete="off"
                pattern="[0-9 ]{12,15}"
                value={values.code}
                onChange={(event) => setValues({ ...values, code: event.currentTarget.value })}
              />
              <PasswordInput
                label={texts.pin}
                required
                inputMode="numeric"
                autoComplete="off"
                pattern="[0-9]{4}"
                w={140}
                value={values.pin}
                onChange={(event) => setValues({ ...values, pin: event.currentTarget.value })}
              />
              <Button type="submit">{texts.check}</Button>
            </Group>
          </form>
        </Panel>
        {error !== undefined && <Problem error={error} />}
        {answer && (
          <Panel>
            <div style={{ padding: 16 }}>
              <Fields of={answer} />
            </div>
          </Panel>
        )}
      </Stack>
    </>
  );
}
