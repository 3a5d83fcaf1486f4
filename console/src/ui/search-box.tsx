import { Combobox, Kbd, TextInput, useCombobox } from '@mantine/core';
import { useHotkeys } from '@mantine/hooks';
import { useNavigate } from '@tanstack/react-router';
import { type FormEvent, Suspense, useEffect, useRef, useState } from 'react';
import { useTexts } from '../i18n/index.tsx';
import { guess, searched } from '../search.ts';
import { ActionDialog, loadDialog } from './actions.tsx';
import { type Find, useFinds } from './finds.ts';
import { Icon } from './icons.tsx';
import { useSingleKeys } from './keys.ts';
import { useWhenLoaded } from './loaded.ts';
import type { Places } from './menu.ts';

/**
 * Goes to a page or to the thing that is named, or begins an operation: what the form of the text suggests, or
 * what its words are in. 16 digits are never sent.
 */
export function SearchBox({ groups }: { groups: Places }) {
  const texts = useTexts().search;
  const navigate = useNavigate();
  const whenLoaded = useWhenLoaded();
  const input = useRef<HTMLInputElement>(null);
  const combobox = useCombobox({ onDropdownClose: () => combobox.resetSelectedOption() });
  const [text, setText] = useState('');
  const [note, setNote] = useState<string>();
  const [operation, setOperation] = useState<string>();
  const focus = () => {
    if (!document.querySelector('[aria-modal]')) input.current?.focus();
  };
  const [single] = useSingleKeys();
  useHotkeys([['mod+K', focus], ...(single === 'on' ? [['/', focus] as [string, () => void]] : [])]);
  const found = guess(text);
  // Enter takes the first one.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the options follow from the text
  useEffect(() => {
    if (text.trim() !== '') combobox.selectFirstOption();
  }, [text]);
  const leave = () => {
    setText('');
    combobox.closeDropdown();
    input.current?.blur();
  };
  const look = (event?: FormEvent) => {
    event?.preventDefault();
    if (!found) return;
    if (found.kind === 'code-with-pin') {
      setText('');
      combobox.closeDropdown();
      return setNote(texts.isSecret);
    }
    if (found.kind === 'four-digits') {
      combobox.closeDropdown();
      return setNote(texts.fourDigits);
    }
    const isCode = found.kind === 'code';
    searched.code = isCode ? found.text : undefined;
    const sought = found.kind === 'token' ? { prefix: found.text } : { text: isCode ? '' : found.text };
    void navigate({
      to: found.kind === 'token' ? '/tokens' : '/search',
      search: sought as never,
      state: { turn: crypto.randomUUID() } as never,
    });
    leave();
  };
  const choose = (chosen: string) => {
    if (chosen === '') return look();
    if (chosen.startsWith('/')) void navigate({ to: chosen });
    else whenLoaded(loadDialog, () => setOperation(chosen));
    leave();
  };
  // Any words could be a reference, which therefore comes last.
  const isSought = found && found.kind !== 'code-with-pin' && found.kind !== 'four-digits';
  const named = isSought && (
    <Combobox.Option value="">
      {texts.kinds[found.kind]} <b className="mono">{found.kind === 'code' ? '' : found.text}</b>
    </Combobox.Option>
  );
  const isOpen = combobox.dropdownOpened && (!found || isSought);
  return (
    <>
      <form onSubmit={look} style={{ flex: 1, maxWidth: 460 }}>
        <Combobox store={combobox} onOptionSubmit={choose} shadow="md">
          <Combobox.Target>
            <TextInput
              ref={input}
              size="sm"
              value={text}
              placeholder={texts.placeholder}
              aria-label={texts.label}
              error={note}
              autoComplete="off"
              spellCheck={false}
              leftSection={<Icon name="search" size={16} />}
              rightSection={<Kbd size="xs">/</Kbd>}
              onFocus={() => combobox.openDropdown()}
              onBlur={() => combobox.closeDropdown()}
              onChange={(event) => {
                setNote(undefined);
                setText(event.currentTarget.value);
                combobox.openDropdown();
              }}
            />
          </Combobox.Target>
          <Combobox.Dropdown hidden={!isOpen}>
            <Combobox.Options aria-label={texts.label} mah={420} style={{ overflowY: 'auto' }}>
              {found?.kind !== 'reference' && named}
              {isOpen && <Finds text={text} groups={groups} />}
              {found?.kind === 'reference' && named}
            </Combobox.Options>
          </Combobox.Dropdown>
        </Combobox>
      </form>
      <Suspense>
        {operation && <ActionDialog act={{ name: operation }} close={() => setOperation(undefined)} />}
      </Suspense>
    </>
  );
}

/** What the words are in, by its kind. */
function Finds({ text, groups }: { text: string; groups: Places }) {
  const kinds = useTexts().search.finds;
  const finds = useFinds(text, groups);
  const options = ({ to, label }: Find) => (
    <Combobox.Option value={to} key={`${to} ${label}`}>
      {label}
    </Combobox.Option>
  );
  return finds.map(({ kind, found }) => (
    <Combobox.Group label={kinds[kind]} key={kind}>
      {found.map(options)}
    </Combobox.Group>
  ));
}
