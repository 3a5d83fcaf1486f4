import { Button, Group, Stack, Text, TextInput } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { useRef } from 'react';
import { send } from '../api.ts';
import { useTexts } from '../i18n/index.tsx';
import { useFormat } from '../ui/format.ts';
import type { Item } from '../ui/list.tsx';
import { Head, Panel, Problem, submits } from '../ui/parts.tsx';
import { PasswordField } from '../ui/password.tsx';
import { Fields } from '../ui/value.tsx';
import { useValues } from '../ui/values.ts';

/**
 * Shows a voucher's balance by code and PIN. Wrong PINs count as at a till. Code and PIN are not kept after
 * the answer.
 */
export function Screen() {
  const { nav, portal: texts } = useTexts();
  const format = useFormat();
  const code = useRef<HTMLInputElement>(null);
  const { values, setValues, inputOf } = useValues({ code: '', pin: '' });
  const {
    data: answer,
    error,
    isPending,
    mutate,
  } = useMutation({
    mutationFn: () => {
      const body = { code: values.code.replace(/[\s-]/g, ''), pin: values.pin };
      return send<Item>('POST', '/vouchers/check', { body });
    },
    onSuccess: () => {
      setValues({ code: '', pin: '' });
      code.current?.focus();
    },
  });
  const money = (name: string) => format.money(Number(answer?.[name]), String(answer?.['currency']));
  return (
    <>
      <Head title={nav.check} note={texts.checkLead} />
      <Stack maw={560}>
        <Panel padded>
          <form onSubmit={submits(mutate)}>
            <Group align="flex-end" gap={8}>
              <TextInput
                ref={code}
                label={texts.code}
                required
                withAsterisk={false}
                inputMode="numeric"
                autoComplete="off"
                pattern="[0-9 \-]{12,17}"
                {...inputOf('code')}
              />
              <PasswordField
                label={texts.pin}
                required
                withAsterisk={false}
                inputMode="numeric"
                autoComplete="off"
                pattern="[0-9]{4}"
                w={150}
                {...inputOf('pin')}
              />
              <Button type="submit" size="sm" loading={isPending}>
                {texts.checkIt}
              </Button>
            </Group>
          </form>
        </Panel>
        {error && <Problem error={error} />}
        {answer && (
          <Panel padded>
            <Stack gap="md">
              <div>
                <Text size="sm" className="quiet">
                  {texts.usable}
                </Text>
                <div className="stat">{money('usableAmount')}</div>
              </div>
              <Fields of={answer} without={['state', 'currency', 'usableAmount']} />
            </Stack>
          </Panel>
        )}
      </Stack>
    </>
  );
}
