import { Choice } from '../ui/choice.tsx';
import { Figure } from '../ui/figure.tsx';
import './till.css';
import { Button, Group, Stack, Text } from '@mantine/core';
import { useState } from 'react';
import type { PortalAnswer } from '../answers.ts';
import type { Acts } from '../ui/act.ts';
import { Actions } from '../ui/actions.tsx';
import { useApp } from '../ui/app.tsx';
import { useFormat } from '../ui/format.ts';
import { Panel } from '../ui/parts.tsx';
import { useWords } from '../ui/words.ts';
import { useTillTexts } from './texts.ts';

/** What the service answers about a booked sale. */
export type Receipt = PortalAnswer<'till.redeem'>;

const PAPER = 'scrip.till-paper';

/** The reference under which a sale is refunded. Its correction has the same one after `NEW-`. */
function saleOf({ transactionId, reference, refundStatus, originalTransactionId }: Receipt['transaction']) {
  if (refundStatus !== 'NEW') return reference ?? transactionId;
  return reference?.replace(/^NEW-/, '') ?? originalTransactionId;
}

/** A receipt, which can be printed on paper of 80 mm and on A4. */
export function ReceiptPanel({ of, onChanged }: { of: Receipt; onChanged(receipt: Receipt): void }) {
  const texts = useTillTexts();
  const format = useFormat();
  const { kind, word } = useWords();
  const [paper, setPaper] = useState(() => localStorage.getItem(PAPER) ?? 'roll');
  const { transaction, currency, balance, replayed } = of;
  const figures = useApp().operations?.get('till.redeem')?.figures;
  const money = (amount: number) => format.money(Math.abs(amount), currency);
  const onDone = (answer: object) => onChanged(answer as Receipt);
  const given = { reference: transaction.reference ?? transaction.transactionId };
  const { refundStatus, refundable } = transaction;
  // Whatever this receipt sends twice is one refund.
  const [refundReference] = useState(() => `refund-${crypto.randomUUID()}`);
  // The till offers no correction of a sale that was refunded, even in part.
  const isRedemption = transaction.kind === 'REDEMPTION';
  const isWhole = isRedemption && refundStatus === null && refundable === transaction.amount;
  const acts: Acts = [
    isWhole && { name: 'till.correct', given, onDone },
    // A corrected sale too, up to what is left of it, which its correction does not say.
    isRedemption &&
      refundable !== 0 && {
        name: 'till.refund',
        given: { reference: saleOf(transaction), refundReference },
        onDone,
      },
    transaction.kind === 'ACTIVATION' && { name: 'till.void', given, isDanger: true, onDone },
  ];
  return (
    <Panel title={texts.receipt} padded aside={<Actions acts={acts} />}>
      <Stack gap="md">
        <div aria-live="polite">
          <div className="stat">
            <Figure of={figures?.['transaction.amount']} value={transaction.amount} around={[transaction]}>
              {`${kind(transaction.kind, 'kind')} ${money(transaction.amount)}`}
            </Figure>
          </div>
          <Text size="sm" className="quiet">
            <Figure of={figures?.['balance']} value={balance} around={[of]}>
              {`${texts.remaining}: ${money(balance)}`}
            </Figure>
          </Text>
          {refundStatus && <Text size="sm">{word(refundStatus, 'refundStatus')}</Text>}
          {replayed && <Text size="sm">{texts.replayed}</Text>}
        </div>
        <Group gap={8}>
          {/* Enter prints; a digit begins the next sale. */}
          <Button size="sm" autoFocus onClick={() => print()}>
            {texts.print}
          </Button>
          <Choice
            label={texts.paper}
            of={{ roll: texts.roll, a4: texts.a4 }}
            value={paper}
            onChange={(chosen) => {
              localStorage.setItem(PAPER, chosen);
              setPaper(chosen);
            }}
          />
          <Text size="xs" className="quiet">
            {texts.printHint}
          </Text>
        </Group>
        <Paper of={of} paper={paper} />
      </Stack>
    </Panel>
  );
}

/** The printed receipt. It has the masked code, and no PIN. */
function Paper({ of, paper }: { of: Receipt; paper: string }) {
  const texts = useTillTexts();
  const format = useFormat();
  const { kind } = useWords();
  const { session } = useApp();
  const { transaction, voucherCode, serialNumber, currency, balance } = of;
  const lines = [
    [kind(transaction.kind, 'kind'), `${format.money(transaction.amount, currency)}`],
    [texts.remaining, `${format.money(balance, currency)}`],
    [texts.card, voucherCode],
    [texts.serialNumber, serialNumber],
    [texts.reference, transaction.reference],
    [texts.time, format.timeIn(transaction.timestamp, session?.zone ?? 'UTC')],
    [texts.transaction, transaction.transactionId],
  ];
  return (
    <article className="receipt" data-paper={paper} data-recorded="">
      <h3>
        <bdi>{session?.user.merchantName}</bdi>
      </h3>
      <dl className="fields">
        {lines.map(
          ([name, value]) =>
            value && (
              <div key={name}>
                <dt>{name}</dt>
                <dd>{value}</dd>
              </div>
            ),
        )}
      </dl>
    </article>
  );
}
