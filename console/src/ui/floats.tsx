import type { Answer } from '../answers.ts';
import { useTexts } from '../i18n/index.tsx';
import { useApp } from './app.tsx';
import { Figure } from './figure.tsx';
import { useFormat } from './format.ts';
import { Stat } from './parts.tsx';
import { useThing } from './thing.tsx';

type Props = {
  /** Of another one than the merchant of the portal. */
  readonly merchantId?: string;
  readonly to?: string;
  /** As they were at this time; left out: now. */
  readonly at?: string | undefined;
};

/** The floats of a merchant, and how long they last. */
export function Floats({ merchantId, to, at }: Props) {
  const texts = useTexts();
  const format = useFormat();
  const { operations } = useApp();
  const { thing } = useThing<Answer<'float.show'>>('/floats', { query: { merchantId, at } });
  if (!thing || thing.items.length === 0)
    return (
      <Stat label={texts.nav.floats} to={to} note={thing ? texts.float.none : '…'}>
        <span className="quiet">{thing ? '–' : '…'}</span>
      </Stat>
    );
  return thing.items.map(({ currency, balance, daysLeft, ...float }) => (
    <Stat key={currency} label={texts.nav.floats} to={to} note={texts.float.lasts(daysLeft)}>
      <Figure
        of={operations?.get('float.show')?.figures['items.balance']}
        value={balance}
        around={[{ ...float, currency, at }]}
      >
        {format.money(balance, currency)}
      </Figure>
    </Stat>
  ));
}
