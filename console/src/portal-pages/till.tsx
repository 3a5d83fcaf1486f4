import { Alert, Button, Group, Stack, Text } from '@mantine/core';
import { useState } from 'react';
import { useTexts } from '../i18n/index.tsx';
import { type Receipt, ReceiptPanel } from '../till/receipt.tsx';
import { Activate, Again, Redeem, Refused } from '../till/sale-form.tsx';
import type { Sale } from '../till/sales.ts';
import { LatestSales, OpenSales } from '../till/sales-list.tsx';
import { type Sending, useSending } from '../till/sending.ts';
import { useTillTexts } from '../till/texts.ts';
import { Choice } from '../ui/choice.tsx';
import { Head, Panel } from '../ui/parts.tsx';

/** The till: redeems and activates cards, pays out what is left, and prints receipts. */
export function Screen() {
  const { nav } = useTexts();
  const texts = useTillTexts();
  const [mode, setMode] = useState<keyof typeof texts.modes>('redeem');
  const [again, setAgain] = useState<Sale>();
  const [receipt, setReceipt] = useState<Receipt>();
  // A form with a new key has forgotten its card.
  const [round, setRound] = useState(0);
  const sending = useSending((booked) => {
    setReceipt(booked);
    setAgain(undefined);
    setRound(round + 1);
  });
  return (
    <>
      <Head title={nav.till} note={texts.lead}>
        <Choice
          label={nav.till}
          of={texts.modes}
          value={mode}
          disabled={sending.isPending}
          onChange={(chosen) => {
            setMode(chosen);
            setAgain(undefined);
            sending.reset();
          }}
        />
      </Head>
      <div className="two">
        <Stack gap="lg">
          <Panel padded title={again ? texts.again : texts.modes[mode as 'redeem' | 'activate']}>
            {again ? (
              <Again
                key={again.reference}
                sale={again}
                sending={sending}
                onBack={() => setAgain(undefined)}
              />
            ) : mode === 'redeem' ? (
              <Redeem key={round} sending={sending} />
            ) : (
              <Activate key={round} sending={sending} />
            )}
            <Progress of={sending} />
          </Panel>
          {receipt && (
            <ReceiptPanel key={receipt.transaction.transactionId} of={receipt} onChanged={setReceipt} />
          )}
        </Stack>
        <Stack gap="lg">
          <OpenSales sending={sending.isPending} onAgain={setAgain} />
          <LatestSales onReceipt={setReceipt} />
        </Stack>
      </div>
    </>
  );
}

/** How the sale goes that is being sent, or why it did not. */
function Progress({ of: sending }: { of: Sending }) {
  const texts = useTillTexts();
  if (sending.isLost)
    return (
      <Alert color="orange" variant="light" role="alert" mt="md">
        <Group justify="space-between">
          <Text size="sm">{texts.lost}</Text>
          <Button variant="default" onClick={sending.setAside}>
            {texts.setAside}
          </Button>
        </Group>
      </Alert>
    );
  if (sending.isPending) return null;
  if (sending.isAside || sending.isWithoutStore)
    return (
      <Alert color="orange" variant="light" role="alert" mt="md">
        {sending.isAside ? texts.wasSetAside : texts.noStore}
      </Alert>
    );
  return <Refused error={sending.problem} />;
}
