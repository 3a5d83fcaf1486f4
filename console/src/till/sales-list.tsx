import { Alert, Button, Group, Stack, Text, UnstyledButton } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { useApp } from '../ui/app.tsx';
import { Empty, Panel } from '../ui/parts.tsx';
import { Time } from '../ui/value.tsx';
import type { Receipt } from './receipt.tsx';
import { Refused, useSaleName } from './sale-form.tsx';
import { findOutcome, findReceipt, forgetSale, giveUpSale, type Sale } from './sales.ts';
import { useMerchantId, useSales } from './sending.ts';
import { useTillTexts } from './texts.ts';

const ASK_MS = 3_000;
/** A request does not take as long: what is not booked by then was lost on its way. */
const LATE_MS = 60_000;

/** The sales whose outcome is unknown. The till looks for it, and a person decides on those not booked. */
export function OpenSales({ sending, onAgain }: { sending: boolean; onAgain(sale: Sale): void }) {
  const texts = useTillTexts();
  const open = useSales().filter(({ state }) => state === 'sent');
  // The one that is being sent is on the page already.
  if (open.length === 0 || (sending && open.length === 1)) return null;
  return (
    <Panel title={`${texts.open} (${open.length})`}>
      <ul className="plain-list">
        {open.map((sale) => (
          <OpenSale key={sale.reference} sale={sale} onAgain={() => onAgain(sale)} />
        ))}
      </ul>
    </Panel>
  );
}

function OpenSale({ sale, onAgain }: { sale: Sale; onAgain(): void }) {
  const texts = useTillTexts();
  const merchantId = useMerchantId();
  const nameSale = useSaleName();
  const { isSignedOut } = useApp();
  const { data, error } = useQuery({
    queryKey: ['till', sale.reference, sale.sentAt],
    queryFn: () => findOutcome(merchantId, sale),
    enabled: !isSignedOut,
    retry: false,
    refetchInterval: ASK_MS,
  });
  const giveUp = useMutation({ mutationFn: () => giveUpSale(merchantId, sale) });
  const isAbsent = data?.state === 'absent';
  const isLate = Date.now() - Date.parse(sale.sentAt) > LATE_MS;
  const isRedemption = sale.kind === 'redeem';
  return (
    <li>
      <Stack gap={6}>
        <SaleLine sale={sale} />
        {isAbsent ? (
          <>
            <Text size="sm">{`${texts.absent} ${texts.againHint} ${isRedemption ? texts.giveUpHint : ''}`}</Text>
            <Group gap={8}>
              <Button variant="default" aria-label={`${texts.again}: ${nameSale(sale)}`} onClick={onAgain}>
                {texts.again}
              </Button>
              {isRedemption && (
                <Button
                  variant="default"
                  aria-label={`${texts.giveUp}: ${nameSale(sale)}`}
                  loading={giveUp.isPending}
                  onClick={() => giveUp.mutate()}
                >
                  {texts.giveUp}
                </Button>
              )}
              {isLate && (!isRedemption || giveUp.error !== null) && (
                <Button variant="default" onClick={() => forgetSale(merchantId, sale)}>
                  {texts.discard}
                </Button>
              )}
            </Group>
          </>
        ) : (
          <Text size="sm" className="quiet">
            {data?.state === 'sending' ? texts.inOtherTab : texts.asking}
          </Text>
        )}
        <Refused error={giveUp.error ?? (data ? null : error)} />
      </Stack>
    </li>
  );
}

function SaleLine({ sale }: { sale: Sale }) {
  const texts = useTillTexts();
  const nameSale = useSaleName();
  return (
    <span className="sale">
      {nameSale(sale)}
      <small className="quiet">
        <Time at={sale.sentAt} />
        {`, ${texts.states[sale.state]}`}
      </small>
    </span>
  );
}

/** The latest sales of this browser, with their receipts. */
export function LatestSales({ onReceipt }: { onReceipt(receipt: Receipt): void }) {
  const texts = useTillTexts();
  const sales = useSales().filter(({ state }) => state !== 'sent');
  const { mutate, error } = useMutation({
    mutationFn: ({ reference }: Sale) => findReceipt(reference),
    onSuccess: onReceipt,
  });
  return (
    <Panel title={texts.latest}>
      {sales.length === 0 && <Empty text={texts.none} />}
      <ul className="plain-list">
        {sales.map((sale) => (
          <li key={sale.reference}>
            {sale.state === 'booked' ? (
              <UnstyledButton onClick={() => mutate(sale)} w="100%">
                <SaleLine sale={sale} />
              </UnstyledButton>
            ) : (
              <SaleLine sale={sale} />
            )}
          </li>
        ))}
      </ul>
      {error && (
        <Alert color="red" variant="light" role="alert">
          {texts.notFound}
        </Alert>
      )}
    </Panel>
  );
}
