import { Stack, Text } from '@mantine/core';
import type { Answer } from '../answers.ts';
import { useTexts } from '../i18n/index.tsx';
import { Actions } from '../ui/actions.tsx';
import { useApp } from '../ui/app.tsx';
import { Figure } from '../ui/figure.tsx';
import { useFormat } from '../ui/format.ts';
import { List } from '../ui/list.tsx';
import { PageHead } from '../ui/page.tsx';
import { Empty, Panel } from '../ui/parts.tsx';
import { useThing } from '../ui/thing.tsx';
import { Fields } from '../ui/value.tsx';

type Settings = Answer<'settings.show'>;

/** The operations that need an approval, and the end of a day. */
export function Screen() {
  const texts = useTexts();
  const { operations, offers } = useApp();
  const figures = operations?.get('settings.show')?.figures;
  const format = useFormat();
  const { thing, instead } = useThing<Settings>('/settings');
  const { thing: books } = useThing('/books', { enabled: offers('books.show') });
  if (!thing) return instead;
  return (
    <>
      <PageHead title={texts.nav.settings} of="settings.show" />
      <Stack gap="lg" maw={720}>
        <Panel
          title={texts.settings.fourEyes}
          aside={<Actions acts={[{ name: 'settings.set', current: thing, source: '/settings' }]} />}
          padded
        >
          <Fields of={thing} />
        </Panel>
        <Panel title={texts.settings.limits}>
          <Text size="sm" className="quiet" px="var(--edge)">
            {texts.settings.limitsNote}
          </Text>
          <ul className="plain-list">
            {thing.limits.map(({ currency, amount, isDefault }) => (
              <li key={currency} className="line">
                <span>
                  <Figure of={figures?.['limits.amount']} value={amount} around={[]}>
                    {format.money(amount, currency)}
                  </Figure>{' '}
                  {isDefault && <span className="quiet">{texts.settings.unset}</span>}
                </span>
                <Actions
                  shown={1}
                  acts={[
                    { name: 'settings.limit', given: { currency }, initial: { amount }, effect: currency },
                  ]}
                />
              </li>
            ))}
          </ul>
        </Panel>
        {offers('settings.network') && (
          <List
            title={texts.settings.network}
            of="settings.network"
            aside={<Actions acts={[{ name: 'settings.network-amount' }]} />}
            empty={<Empty text={texts.settings.networkNote} />}
            brief
          />
        )}
        {offers('settings.letterhead') && <Letterhead />}
        {offers('bank.pay-in') && (
          <List
            title={texts.settings.payIn}
            of="bank.pay-in"
            aside={<Actions acts={[{ name: 'bank.set-pay-in' }]} />}
            empty={<Empty text={texts.settings.payInNote} />}
            brief
          />
        )}
        {books && (
          <Panel
            title={texts.settings.day}
            aside={<Actions acts={[{ name: 'books.set', current: books, source: '/books' }]} />}
            padded
          >
            <Fields of={books} />
          </Panel>
        )}
      </Stack>
    </>
  );
}

/** The sender of documents for merchants. */
function Letterhead() {
  const { letterhead, letterheadNote } = useTexts().settings;
  const path = '/settings/letterhead';
  const { thing } = useThing<Answer<'settings.letterhead'>>(path);
  if (!thing) return null;
  return (
    <Panel
      title={letterhead}
      aside={<Actions acts={[{ name: 'settings.set-letterhead', current: thing, source: path }]} />}
      padded
    >
      {thing.sender === null ? (
        <Text size="sm" className="quiet">
          {letterheadNote}
        </Text>
      ) : (
        <Fields of={thing} />
      )}
    </Panel>
  );
}
