import { ActionIcon, Menu } from '@mantine/core';
import { useLocalStorage } from '@mantine/hooks';
import { Link } from '@tanstack/react-router';
import type { Listed } from '../answers.ts';
import { useTexts } from '../i18n/index.tsx';
import { useApp } from './app.tsx';
import { useFormat } from './format.ts';
import { Icon } from './icons.tsx';
import { useItems } from './items.ts';
import { useWords } from './words.ts';

export type Matter = Listed<'inbox.list'>;

/** What waits for this person. All parts of a page ask for it together. @returns undefined until it is read */
export function useInbox(): readonly Matter[] | undefined {
  return useItems<Matter>('/inbox', { refetchMs: 60_000, staleMs: 30_000 });
}

/** How many of a matter there are, as far as they were counted. */
export const countOf = ({ count, isMore }: Matter) => (isMore ? `${count}+` : String(count));

/** The service names this many at most. */
const ABOUT_MAX = 3;

/** What a matter is about: names, with how long a float lasts or how much was paid. */
export function useAbout() {
  const { overview, chart } = useTexts();
  const format = useFormat();
  return ({ about, count }: Matter): string => {
    const texts = about.map(({ name, daysLeft, paid, amount, percent, currency }) => {
      if (paid !== null && amount !== null && currency !== null)
        return overview.networkPaid(
          `${format.money(paid, currency)}`,
          `${format.money(amount, currency)}`,
          percent ?? 0,
        );
      return daysLeft === null ? name : `${name}: ${chart.lasts(daysLeft)}`;
    });
    return about.length === ABOUT_MAX && count > ABOUT_MAX ? `${texts.join(', ')}, …` : texts.join(', ');
  };
}

/** The bell: what waits for this person on any page, and news until they have been looked at. */
export function Inbox() {
  const { inbox: texts } = useTexts();
  const { session } = useApp();
  const { kind } = useWords();
  const about = useAbout();
  const [seen, setSeen] = useLocalStorage<string>({
    key: `scrip.inbox.${session?.user.id ?? ''}`,
    defaultValue: '',
    getInitialValueInEffect: false,
  });
  const mine = (useInbox() ?? []).filter(({ isYours }) => isYours);
  const isOpen = ({ at }: Matter) => at === null || at > seen;
  const open = mine.filter(isOpen);
  const count = open.reduce((sum, matter) => sum + matter.count, 0);
  const newest = mine.reduce((last, { at }) => (at !== null && at > last ? at : last), '');
  return (
    <Menu width={320} onOpen={() => setSeen(newest)}>
      <Menu.Target>
        <ActionIcon
          className="bell"
          variant="subtle"
          color="gray"
          aria-label={texts.title(count)}
          data-new={count > 0 || undefined}
        >
          <Icon name="bell" />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>{mine.length > 0 ? texts.lead : texts.nothing}</Menu.Label>
        {mine.map((matter) => (
          <Menu.Item
            key={matter.matter}
            component={Link}
            to={matter.link}
            rightSection={<b className="number">{countOf(matter)}</b>}
          >
            {kind(matter.matter, 'matter')}
            {matter.about.length > 0 && <small className="quiet below">{about(matter)}</small>}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}
