import { Stack, Text } from '@mantine/core';
import { useState } from 'react';
import type { PortalAnswer } from '../answers.ts';
import { useTexts } from '../i18n/index.tsx';
import { CardForm } from '../till/card-form.tsx';
import { Refused, useCheck } from '../till/sale-form.tsx';
import { useTillTexts } from '../till/texts.ts';
import { useApp } from '../ui/app.tsx';
import { Figure } from '../ui/figure.tsx';
import { useFormat } from '../ui/format.ts';
import { Head, Panel } from '../ui/parts.tsx';
import { Fields } from '../ui/value.tsx';

/**
 * Shows a voucher's balance by code and PIN. Wrong PINs count as at a till. Code and PIN are not kept after
 * the answer.
 */
export function Screen() {
  const { nav } = useTexts();
  const texts = useTillTexts();
  const format = useFormat();
  const check = useCheck();
  const figures = useApp().operations?.get('voucher.check')?.figures;
  const [answer, setAnswer] = useState<PortalAnswer<'voucher.check'>>();
  return (
    <>
      <Head title={nav.check} note={texts.checkLead} />
      <Stack maw={560}>
        <Panel padded>
          <CardForm
            button={texts.check}
            isPending={check.isPending}
            onCard={async (card) => {
              setAnswer(undefined);
              setAnswer(await check.mutateAsync(card));
              check.reset();
            }}
          />
        </Panel>
        <Refused error={check.error} />
        {answer && (
          <Panel padded>
            <Stack gap="md">
              <div>
                <Text size="sm" className="quiet">
                  {texts.usable}
                </Text>
                <div className="stat">
                  <Figure of={figures?.['usableAmount']} value={answer.usableAmount} around={[answer]}>
                    {format.money(answer.usableAmount, answer.currency)}
                  </Figure>
                </div>
              </div>
              <Fields of={answer} answer="voucher.check" without={['currency', 'usableAmount']} />
            </Stack>
          </Panel>
        )}
      </Stack>
    </>
  );
}
