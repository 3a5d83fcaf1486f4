import {
  ActionIcon,
  AppShell,
  Burger,
  Group,
  Menu,
  NavLink,
  ScrollArea,
  Text,
  TextInput,
  UnstyledButton,
  useMantineColorScheme,
} from '@mantine/core';
import { useDisclosure, useHotkeys } from '@mantine/hooks';
import { useQueryClient } from '@tanstack/react-query';
import { Link, useNavigate, useRouterState } from '@tanstack/react-router';
import { type FormEvent, type ReactNode, useRef, useState } from 'react';
import { send } from '../api.ts';
import { useLanguage, useTexts } from '../i18n/index.tsx';
import { guess } from '../search.ts';
import { useApp } from './app.tsx';

export type Place = { readonly to: string; readonly label: string; readonly needs?: string };

/** The frame of every page: navigation by rights, search, language, theme, account. */
export function Shell({
  places,
  children,
}: {
  readonly places: readonly Place[];
  readonly children: ReactNode;
}) {
  const texts = useTexts();
  const { door, offers } = useApp();
  const [isOpen, { toggle, close }] = useDisclosure();
  const path = useRouterState({ select: ({ location }) => location.pathname });
  const shown = places.filter(({ needs }) => needs === undefined || offers(needs));
  return (
    <AppShell
      header={{ height: 52 }}
      navbar={{ width: 208, breakpoint: 'sm', collapsed: { mobile: !isOpen } }}
      padding="md"
    >
      <a className="skip" href="#content">
        {texts.skip}
      </a>
      <AppShell.Header style={{ borderColor: 'var(--scrip-line)' }}>
        <Group h="100%" px="md" justify="space-between" wrap="nowrap" gap="sm">
          <Group gap="sm" wrap="nowrap">
            <Burger opened={isOpen} onClick={toggle} hiddenFrom="sm" size="sm" aria-label={texts.menu} />
            <Text fw={700} component={Link} to="/" c="inherit" td="none" style={{ letterSpacing: '-0.01em' }}>
              {texts.product}
            </Text>
          </Group>
          {door === 'operator' && <Search />}
          <Account />
        </Group>
      </AppShell.Header>
      <AppShell.Navbar p="xs" style={{ borderColor: 'var(--scrip-line)' }} aria-label={texts.menu}>
        <ScrollArea>
          {shown.map(({ to, label }) => (
            <NavLink
              key={to}
              component={Link}
              to={to}
              label={label}
              className="nav-link"
              onClick={close}
              active={to === '/' ? path === '/' : path.startsWith(to)}
            />
          ))}
        </ScrollArea>
      </AppShell.Navbar>
      <AppShell.Main id="content">
        <div style={{ maxWidth: 1280, margin: '0 auto' }}>{children}</div>
      </AppShell.Main>
    </AppShell>
  );
}

function Search() {
  const texts = useTexts().search;
  const navigate = useNavigate();
  const input = useRef<HTMLInputElement>(null);
  const [text, setText] = useState('');
  const [note, setNote] = useState<string>();
  const focus = () => input.current?.focus();
  useHotkeys([
    ['/', focus],
    ['mod+K', focus],
  ]);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const found = guess(text);
    if (!found) return;
    if (found.kind === 'code-with-pin') {
      setText('');
      return setNote(texts.isSecret);
    }
    setNote(undefined);
    void navigate({
      to: '/search',
      search: { text: found.kind === 'code' ? '' : found.text } as never,
      state: { code: found.kind === 'code' ? found.text : undefined } as never,
    });
    setText('');
  };
  return (
    <form onSubmit={submit} style={{ flex: 1, maxWidth: 440 }}>
      <TextInput
        ref={input}
        size="xs"
        radius="md"
        value={text}
        placeholder={texts.placeholder}
        aria-label={texts.label}
        error={note}
        autoComplete="off"
        spellCheck={false}
        title={texts.hint}
        onChange={(event) => {
          setNote(undefined);
          setText(event.currentTarget.value);
        }}
      />
    </form>
  );
}

function Account() {
  const texts = useTexts();
  const { language, choose } = useLanguage();
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const { session } = useApp();
  const client = useQueryClient();
  const navigate = useNavigate();
  const signOut = async () => {
    await send('DELETE', '/session').catch(() => undefined);
    await client.resetQueries();
    await navigate({ to: '/sign-in' });
  };
  return (
    <Menu position="bottom-end" width={220}>
      <Menu.Target>
        <UnstyledButton aria-label={texts.nav.account}>
          <ActionIcon component="span" variant="light" radius="xl" size={32}>
            {(session?.user.name || session?.user.email || '?').charAt(0).toUpperCase()}
          </ActionIcon>
        </UnstyledButton>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>{session?.user.email}</Menu.Label>
        <Menu.Item component={Link} to="/account">
          {texts.nav.account}
        </Menu.Item>
        <Menu.Divider />
        {(['light', 'dark', 'auto'] as const).map((scheme) => (
          <Menu.Item
            key={scheme}
            aria-current={colorScheme === scheme}
            fw={colorScheme === scheme ? 600 : undefined}
            onClick={() => setColorScheme(scheme)}
          >
            {texts.theme[scheme]}
          </Menu.Item>
        ))}
        <Menu.Divider />
        <Menu.Item onClick={() => choose(language === 'en' ? 'de' : 'en')}>
          {language === 'en' ? 'Deutsch' : 'English'}
        </Menu.Item>
        <Menu.Item component="a" href="/docs/">
          {texts.nav.docs}
        </Menu.Item>
        <Menu.Divider />
        <Menu.Item onClick={signOut}>{texts.nav.signOut}</Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
