import { Button, Group, Stack, Text, TextInput } from '@mantine/core';
import { Link, useRouterState } from '@tanstack/react-router';
import { useState, useSyncExternalStore } from 'react';
import { useTexts } from '../i18n/index.tsx';
import { useFilters } from './address.ts';
import { useApp } from './app.tsx';
import { Dialog, focusesFirst } from './dialog.tsx';
import { useListTexts } from './list-texts.ts';
import { submits } from './parts.tsx';
import { onViews, removeView, saveView, storedViews } from './view-store.ts';
import { addressOf, couldBeSecret, parametersOf, type View } from './views.ts';

const NAME_MAX = 60;

/** @param names the parameters in the address of the list: its filters and its columns */
function useViews(names: readonly string[]) {
  const userId = useApp().session?.user.id ?? '';
  const path = useRouterState({ select: ({ location }) => location.pathname });
  const search = useFilters();
  const stored = useSyncExternalStore(onViews, () => storedViews(userId));
  // A page with several lists shows each in a tab of its own, with its own views.
  const plain = addressOf(path, search, ['tab']);
  const views = (JSON.parse(stored) as View[]).filter(({ address }) => {
    const [of = ''] = address.split('?');
    return addressOf(of, parametersOf(address), ['tab']) === plain;
  });
  const address = addressOf(path, search, ['tab', ...names]);
  const isSecret = names.some((name) => couldBeSecret(search[name] ?? ''));
  return { userId, plain, views, address, open: views.find((view) => view.address === address), isSecret };
}

type Props = { readonly names: readonly string[] };

/** The saved views of a list as links, after the one to the whole list. */
export function ViewTabs({ names }: Props) {
  const { all } = useTexts().list;
  const texts = useListTexts();
  const { plain, views } = useViews(names);
  if (views.length === 0) return null;
  return (
    <nav className="views" aria-label={texts.views}>
      {[{ address: plain, name: all }, ...views].map(({ address, name }) => (
        <Link
          key={address}
          to={address.split('?')[0]}
          search={parametersOf(address) as never}
          activeOptions={{ exact: true }}
        >
          <bdi>{name}</bdi>
        </Link>
      ))}
    </nav>
  );
}

/** Saves the view that is seen; one that is saved is renamed or removed. */
export function SaveView({ names }: Props) {
  const texts = useListTexts();
  const { action } = useTexts();
  const { userId, plain, address, open, isSecret } = useViews(names);
  const [isAsked, setAsked] = useState(false);
  const [name, setName] = useState('');
  const [isRefused, setRefused] = useState(false);
  if (address === plain) return null;
  const label = open ? texts.edit : texts.save;
  const close = () => setAsked(false);
  const ask = () => {
    setName(open?.name ?? '');
    setRefused(false);
    setAsked(true);
  };
  const save = () => {
    try {
      saveView(userId, { address, name: name.trim() });
      close();
    } catch {
      setRefused(true);
    }
  };
  const remove = () => {
    removeView(userId, address);
    close();
  };
  const holdsSecret = isSecret || couldBeSecret(name);
  return (
    <>
      <Button variant="default" onClick={ask}>
        {label}
      </Button>
      <Dialog opened={isAsked} onClose={close} title={label}>
        <form ref={focusesFirst} onSubmit={submits(save)}>
          <Stack>
            <TextInput
              label={texts.name}
              required
              pattern=".*\S.*"
              maxLength={NAME_MAX}
              value={name}
              error={holdsSecret ? texts.isSecret : isRefused && texts.notStored}
              onChange={(event) => setName(event.currentTarget.value)}
            />
            <Text size="sm" className="quiet">
              {texts.where}
            </Text>
            <Group justify="flex-end" gap={8}>
              {open && (
                <Button variant="default" className="bad" mr="auto" onClick={remove}>
                  {texts.remove}
                </Button>
              )}
              <Button variant="default" onClick={close}>
                {action.cancel}
              </Button>
              <Button type="submit" disabled={holdsSecret}>
                {action.save}
              </Button>
            </Group>
          </Stack>
        </form>
      </Dialog>
    </>
  );
}
