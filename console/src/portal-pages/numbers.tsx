import type { PortalAnswer } from '../answers.ts';
import { useTexts } from '../i18n/index.tsx';
import { useFormat } from '../ui/format.ts';
import { Stat } from '../ui/parts.tsx';
import { useThing } from '../ui/thing.tsx';
import { State } from '../ui/value.tsx';

export function Floats() {
  const texts = useTexts();
  const format = useFormat();
  const { thing } = useThing<PortalAnswer<'float.show'>>('/floats', { refetchMs: () => 30_000 });
  if (!thing || thing.items.length === 0)
    return (
      <Stat label={texts.nav.floats} to="/float" note={thing ? texts.float.none : '…'}>
        <span className="quiet">{thing ? '–' : '…'}</span>
      </Stat>
    );
  return thing.items.map(({ currency, balance, daysLeft }) => (
    <Stat key={currency} label={texts.nav.floats} to="/float" note={texts.float.lasts(daysLeft)}>
      {format.money(balance, currency)}
    </Stat>
  ));
}

/** The newest statement in each currency. */
export function ToBeSettled() {
  const texts = useTexts();
  const format = useFormat();
  const { thing } = useThing<PortalAnswer<'settlement.list'>>('/settlements');
  const newest = new Map<string, PortalAnswer<'settlement.list'>['items'][number]>();
  for (const each of thing?.items ?? []) if (!newest.has(each.currency)) newest.set(each.currency, each);
  return [...newest.values()].map(({ id, currency, payable, state }) => (
    <Stat key={id} label={texts.overview.settlement} to={`/settlements/${id}`} note={<State name={state} />}>
      {format.money(payable, currency)}
    </Stat>
  ));
}
