import './shell-styles.ts';
import { ActionIcon, Badge, Group, Menu, UnstyledButton, useMantineColorScheme } from '@mantine/core';
import { useDisclosure, useHotkeys } from '@mantine/hooks';
import { Link, useRouterState } from '@tanstack/react-router';
import { lazy, type ReactNode, Suspense, useEffect, useRef, useState } from 'react';
import { send } from '../api.ts';
import { LANGUAGES, useLanguage, useTexts } from '../i18n/index.tsx';
import { useApp } from './app.tsx';
import { useAtWork } from './at-work.ts';
import { Banners } from './banners.tsx';
import { Icon } from './icons.tsx';
import { Inbox, useInbox } from './inbox.tsx';
import { useKeys } from './keys.ts';
import { useWhenLoaded } from './loaded.ts';
import { type Places, type SideMenu, useMenu } from './menu.ts';
import { SearchBox } from './search-box.tsx';
import { SCHEMES } from './theme.ts';
import { useWords } from './words.ts';

const loadKeyboard = () => import('./keyboard.tsx');
const Keyboard = lazy(async () => ({ default: (await loadKeyboard()).Keyboard }));

/** The frame of every page: navigation by rights, search, language, theme, account. */
export function Shell({ menu, children }: { readonly menu: SideMenu; readonly children: ReactNode }) {
  const groups = useMenu(menu);
  const texts = useTexts();
  const { door, session } = useApp();
  const [isOpen, { toggle, close }] = useDisclosure();
  const path = useRouterState({ select: ({ location }) => location.pathname });
  useHotkeys([['Escape', close]]);
  const offered = groups.flatMap(({ places }) => places.map(({ to }) => to));
  const messages = useMessages();
  const whenLoaded = useWhenLoaded();
  const [isHelp, setHelp] = useState<boolean>();
  const help = () => whenLoaded(loadKeyboard, () => setHelp(true));
  useKeys(offered, help);
  const main = useRef<HTMLElement>(null);
  // The address is ahead of the page that is shown while a page loads.
  const shown = useRouterState({ select: ({ matches }) => matches.at(-1)?.pathname });
  const known = useRef(shown);
  // A new page begins at its top, without the menu, and with the focus, unless a field of it has that.
  useEffect(() => {
    if (known.current === shown) return;
    known.current = shown;
    close();
    window.scrollTo(0, 0);
    if (!main.current?.contains(document.activeElement)) main.current?.focus({ preventScroll: true });
  }, [shown, close]);
  return (
    <div className="frame">
      <a className="skip" href="#content">
        {texts.skip}
      </a>
      <nav className="side" data-open={isOpen} aria-label={texts.menu} id="menu">
        <Link to="/" className="brand" title={session?.operator ?? undefined}>
          <Icon name="vouchers" size={22} />
          <bdi>{session?.operator ?? texts.product}</bdi>
        </Link>
        <Navigation groups={groups} path={path} />
      </nav>
      <button type="button" className="shade" data-open={isOpen} aria-label={texts.close} onClick={close} />
      <div>
        <header className="top">
          <ActionIcon
            className="menu-button"
            variant="subtle"
            color="gray"
            aria-label={texts.menu}
            aria-expanded={isOpen}
            aria-controls="menu"
            onClick={toggle}
          >
            <Icon name="menu" />
          </ActionIcon>
          {door === 'operator' ? <SearchBox groups={groups} /> : <Merchant />}
          <Group gap={8} ml="auto" wrap="nowrap">
            <Inbox />
            <Account help={help} />
          </Group>
        </header>
        <Suspense>
          {isHelp !== undefined && (
            <Keyboard opened={isHelp} close={() => setHelp(false)} offered={offered} />
          )}
        </Suspense>
        <p className="skip" role="status" id="announced" />
        <Banners />
        {messages}
        <main id="content" className="content" ref={main} tabIndex={-1}>
          {children}
        </main>
      </div>
    </div>
  );
}

/**
 * Loads the messages when somebody begins to work: they follow from what is done in the page. If their file is
 * away, a notice asks to reload the page: Chromium asks for such a file only then.
 */
function useMessages(): ReactNode {
  const { noFile } = useTexts().problem;
  const isAtWork = useAtWork();
  const [messages, setMessages] = useState<ReactNode>();
  useEffect(() => {
    if (!isAtWork) return;
    import('./messages.tsx').then(
      ({ Messages }) => setMessages(<Messages />),
      () => setMessages(<div className="banner">{noFile}</div>),
    );
  }, [isAtWork, noFile]);
  return messages;
}

/** The merchant whose portal this is. */
function Merchant() {
  const user = useApp().session?.user;
  return (
    <span className="merchant">
      <bdi>{user?.merchantName}</bdi>
      {user && <small className="quiet">№ {user.merchantId}</small>}
    </span>
  );
}

function Navigation({ groups, path }: { groups: Places; path: string }) {
  const isAt = (to: string) => (to === '/' ? path === '/' : path === to || path.startsWith(`${to}/`));
  return groups.map(({ label, places }) => (
    <div key={label ?? ''}>
      {label && <h2>{label}</h2>}
      {places.map(({ to, icon, label: name }) => (
        <Link key={to} to={to} className="side-link" aria-current={isAt(to) ? 'page' : undefined}>
          <Icon name={icon} />
          {name}
          {to === '/approvals' && <Waiting />}
        </Link>
      ))}
    </div>
  ));
}

/** The number of proposals that wait for an approval. */
function Waiting() {
  const { approvals } = useTexts();
  const count = useInbox()?.find(({ matter }) => matter === 'approval-waiting')?.count ?? 0;
  return count === 0 ? null : (
    <Badge className="count" size="sm" circle={count < 10} aria-label={`${approvals.waiting}: ${count}`}>
      {count}
    </Badge>
  );
}

function Account({ help }: { help(): void }) {
  const texts = useTexts();
  const { language, choose } = useLanguage();
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const { session, door } = useApp();
  const { kind } = useWords();
  const other = language === 'en' ? 'de' : 'en';
  const signOut = async () => {
    await send('DELETE', '/session').catch(() => undefined);
    // Loads a fresh page, so that no data of this person stays in memory.
    location.assign(door === 'operator' ? '/console/sign-in' : '/portal/sign-in');
  };
  return (
    <Menu width={220}>
      <Menu.Target>
        <UnstyledButton aria-label={texts.nav.account}>
          <ActionIcon component="span" variant="light" radius="xl" size={30} fz="sm" fw={600}>
            {(session?.user.name || session?.user.email || '?').charAt(0).toUpperCase()}
          </ActionIcon>
        </UnstyledButton>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>
          {session?.user.name && <b className="below">{session.user.name}</b>}
          {session?.user.email}
          <span className="below">{session?.user.roles.map((role) => kind(role, 'roles')).join(', ')}</span>
        </Menu.Label>
        <Menu.Item component={Link} to="/account">
          {texts.nav.account}
        </Menu.Item>
        <Menu.Divider />
        {SCHEMES.map((scheme) => (
          <Menu.Item
            key={scheme}
            rightSection={colorScheme === scheme ? '✓' : undefined}
            onClick={() => setColorScheme(scheme)}
          >
            {texts.theme[scheme]}
          </Menu.Item>
        ))}
        <Menu.Divider />
        <Menu.Item lang={other} onClick={() => choose(other)}>
          {LANGUAGES[other]}
        </Menu.Item>
        <Menu.Item onClick={help}>{texts.keyboard.title}</Menu.Item>
        <Menu.Item component="a" href="/docs/">
          {texts.nav.docs}
        </Menu.Item>
        <Menu.Divider />
        <Menu.Item onClick={signOut}>{texts.nav.signOut}</Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
