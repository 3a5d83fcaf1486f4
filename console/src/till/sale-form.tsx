import { Alert, Button, Group, Stack, Text, TextInput } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { type KeyboardEvent, type ReactNode, useState } from 'react';
import type { PortalAnswer } from '../answers.ts';
import { ApiProblem, send } from '../api.ts';
import { useLanguage, useTexts } from '../i18n/index.tsx';
import { useApp } from '../ui/app.tsx';
import { Dialog } from '../ui/dialog.tsx';
import { Figure } from '../ui/figure.tsx';
import { useFormat } from '../ui/format.ts';
import { readNumber } from '../ui/number.ts';
import { Problem, submits } from '../ui/parts.tsx';
import { CardForm } from './card-form.tsx';
import { type CodeAndPin, type Given, type Kind, nameOf, type Sale } from './sales.ts';
import { newSale, type Sending, useReference, useSales } from './sending.ts';
import { useTillTexts } from './texts.ts';

type Checked = PortalAnswer<'voucher.check'>;

/** Asks for the balance of a card. */
export const useCheck = () =>
  useMutation({ mutationFn: (body: CodeAndPin) => send<Checked>('POST', '/vouchers/check', { body }) });

/** Why something was refused. When the session has ended, a dialog asks for the sign-in instead. */
export function Refused({ error }: { error: Error | null }) {
  if (!error || (error instanceof ApiProblem && error.status === 401)) return null;
  return <Problem error={error} />;
}

/** A redemption: first the card, then the amount. */
export function Redeem({ sending }: { sending: Sending }) {
  const texts = useTillTexts();
  const check = useCheck();
  if (!check.data || !check.variables)
    return (
      <CardForm button={texts.next} isPending={check.isPending} onCard={check.mutateAsync}>
        <Refused error={check.error} />
      </CardForm>
    );
  return <Amount given={check.variables} card={check.data} sending={sending} onBack={check.reset} />;
}

type AmountProps = { given: CodeAndPin; card: Checked; sending: Sending; onBack(): void };

function Amount({ given, card: { usableAmount, currency }, sending, onBack }: AmountProps) {
  const texts = useTillTexts();
  const format = useFormat();
  const { language } = useLanguage();
  const { operations, offers } = useApp();
  const [typed, setTyped] = useState('');
  const [isPayingOut, setPayingOut] = useState(false);
  const amount = readNumber(typed, language);
  const isWrong = typeof amount === 'string';
  const reference = useReference();
  const start = (kind: Kind, of: number) =>
    sending.send(newSale({ reference, kind, card: nameOf(given), amount: of, currency }), given);
  return (
    <Begun given={given} sending={sending} onBack={onBack}>
      <div>
        <Text size="sm" className="quiet">
          {texts.usable}
        </Text>
        <div className="stat">
          <Figure
            of={operations?.get('voucher.check')?.figures['usableAmount']}
            value={usableAmount}
            around={[]}
          >
            {format.money(usableAmount, currency)}
          </Figure>
        </div>
      </div>
      {usableAmount === 0 ? (
        <Text size="sm">{texts.nothingLeft}</Text>
      ) : (
        <form
          onSubmit={submits(() => {
            if (typeof amount === 'number') start('redeem', amount);
          })}
        >
          <Group align="flex-end" gap={8}>
            <TextInput
              label={`${texts.amount} (${currency})`}
              required
              withAsterisk={false}
              autoFocus
              inputMode="decimal"
              autoComplete="off"
              placeholder={`${format.amount(0, currency)}`}
              w={150}
              error={isWrong && texts.notAmount}
              value={typed}
              onChange={(event) => setTyped(event.currentTarget.value)}
            />
            <Button type="submit" size="sm" loading={sending.isPending} disabled={isWrong}>
              {texts.modes.redeem}
            </Button>
            <Button
              variant="default"
              size="sm"
              disabled={sending.isPending}
              onClick={() => setTyped(`${format.amount(usableAmount, currency)}`)}
            >
              {texts.all}
            </Button>
            {offers('till.cash-out') && (
              <Button
                variant="default"
                size="sm"
                disabled={sending.isPending}
                onClick={() => setPayingOut(true)}
              >
                {texts.cashOut}
              </Button>
            )}
          </Group>
        </form>
      )}
      <PayOut
        question={isPayingOut ? texts.cashOutAsk(`${format.money(usableAmount, currency)}`) : undefined}
        onYes={() => start('cash-out', usableAmount)}
        onClose={() => setPayingOut(false)}
      />
    </Begun>
  );
}

/** Asks before the rest of a card is paid out, since cash does not come back. */
function PayOut({ question, onYes, onClose }: { question?: string; onYes(): void; onClose(): void }) {
  const texts = useTillTexts();
  const { cancel } = useTexts().action;
  return (
    <Dialog opened={question !== undefined} onClose={onClose} title={texts.cashOut}>
      <Stack>
        <Text size="sm">{question}</Text>
        <Group justify="flex-end" gap={8}>
          <Button variant="default" size="sm" onClick={onClose}>
            {cancel}
          </Button>
          <Button
            size="sm"
            data-autofocus
            onClick={() => {
              onClose();
              onYes();
            }}
          >
            {texts.cashOut}
          </Button>
        </Group>
      </Stack>
    </Dialog>
  );
}

/** An activation: a card, or the serial number of one that the merchant generated. */
export function Activate({ sending }: { sending: Sending }) {
  const texts = useTillTexts();
  const [given, setGiven] = useState<Given>();
  if (!given) return <CardForm button={texts.next} takesSerial onCard={async (card) => setGiven(card)} />;
  return <Activation given={given} sending={sending} onBack={() => setGiven(undefined)} />;
}

function Activation({ given, sending, onBack }: { given: Given; sending: Sending; onBack(): void }) {
  const texts = useTillTexts();
  const { language } = useLanguage();
  const reference = useReference();
  const [typed, setTyped] = useState('');
  const value = readNumber(typed, language);
  const isWrong = typeof value === 'string';
  const start = (amount: number | null) =>
    sending.send(
      newSale({ reference, kind: 'activate', card: nameOf(given), amount, currency: null }),
      given,
    );
  return (
    <Begun given={given} sending={sending} onBack={onBack}>
      <form
        onSubmit={submits(() => {
          if (!isWrong) start(value ?? null);
        })}
      >
        <Group align="flex-end" gap={8}>
          {'serialNumber' in given && (
            <TextInput
              label={texts.value}
              autoFocus
              inputMode="decimal"
              autoComplete="off"
              w={230}
              error={isWrong && texts.notAmount}
              value={typed}
              onChange={(event) => setTyped(event.currentTarget.value)}
            />
          )}
          <Button type="submit" size="sm" autoFocus={'code' in given} loading={sending.isPending}>
            {texts.modes.activate}
          </Button>
        </Group>
      </form>
    </Begun>
  );
}

/** A sale whose outcome is unknown, which is sent again under its reference. The card has to be read again. */
export function Again({ sale, sending, onBack }: { sale: Sale; sending: Sending; onBack(): void }) {
  const texts = useTillTexts();
  const nameSale = useSaleName();
  const [isOther, setOther] = useState(false);
  const isBySerial = /^[0-9]+$/.test(sale.card);
  const take = async (given: Given) => {
    setOther(nameOf(given) !== sale.card);
    if (nameOf(given) === sale.card) sending.send(sale, given);
  };
  return (
    <Stack gap="md" onKeyDown={escapes(onBack)}>
      <Text size="sm">{texts.againLead(nameSale(sale))}</Text>
      <CardForm button={texts.again} isPending={sending.isPending} takesSerial={isBySerial} onCard={take}>
        {isOther && (
          <Alert color="red" variant="light" role="alert" mt="md">
            {texts.otherThan(sale.card)}
          </Alert>
        )}
      </CardForm>
      <Group>
        <Button variant="default" disabled={sending.isPending} onClick={onBack}>
          {texts.otherCard}
        </Button>
      </Group>
    </Stack>
  );
}

/** Returns how a sale is named, such as `Redemption USD 5.00, 4829****7641`. */
export function useSaleName() {
  const texts = useTillTexts();
  const format = useFormat();
  return ({ kind, amount, currency, card }: Sale) => {
    const money =
      amount === null ? '' : ` ${currency ? format.money(amount, currency) : format.number(amount)}`;
    return `${texts.kinds[kind]}${money}, ${card}`;
  };
}

const escapes = (run: () => void) => (event: KeyboardEvent) => {
  if (event.key === 'Escape') run();
};

type BegunProps = { given: Given; sending: Sending; onBack(): void; children: ReactNode };

/** A sale with a card that is known. If the outcome of another one with it is unknown, that comes first. */
function Begun({ given, sending, onBack, children }: BegunProps) {
  const texts = useTillTexts();
  const card = nameOf(given);
  const isUndecided = useSales().some((sale) => sale.state === 'sent' && sale.card === card);
  const back = () => {
    if (!sending.isPending) onBack();
  };
  return (
    <Stack gap="md" onKeyDown={escapes(back)}>
      <Group justify="space-between" wrap="nowrap">
        <span className="mono">{card}</span>
        <Button variant="default" disabled={sending.isPending} onClick={back}>
          {texts.otherCard}
        </Button>
      </Group>
      {isUndecided && !sending.isPending ? (
        <Alert color="orange" variant="light" role="alert">
          {texts.undecided(card)}
        </Alert>
      ) : (
        children
      )}
    </Stack>
  );
}
