import { Combobox, Kbd, TextInput, useCombobox } from '@mantine/core';
import { useHotkeys } from '@mantine/hooks';
import { useNavigate } from '@tanstack/react-router';
import { type FormEvent, useRef, useState } from 'react';
import { useTexts } from '../i18n/index.tsx';
import { guess, searched } from '../search.ts';
import { Icon } from './icons.tsx';
import { useMerchants } from './names.ts';
import type { Places } from './shell.tsx';

const SUGGESTED_MAX = 6;

/** Goes to a page, a merchant, or the thing that the form of the text suggests. 16 digits are never sent. */
export function SearchBox({ groups }: { groups: Places }) {
  const texts = useTexts().search;
  const navigate = useNavigate();
  const { merchants } = useMerchants();
  const input = useRef<HTMLInputElement>(null);
  const combobox = useCombobox({ onDropdownClose: () => combobox.resetSelectedOption() });
  const [text, setText] = useState('');
  const [note, setNote] = useState<string>();
  const focus = () => {
    if (!document.querySelector('[aria-modal]')) input.current?.focus();
  };
  useHotkeys([
    ['/', focus],
    ['mod+K', focus],
  ]);
  const wanted = text.trim().toLowerCase();
  const found = guess(text);
  const pages = groups
    .flatMap(({ places }) => places)
    .filter(({ label }) => label.toLowerCase().includes(wanted))
    .map(({ to, label }) => ({ to, label, kind: texts.page }));
  const named = merchants
    .filter(({ name, id }) => name.toLowerCase().includes(wanted) || id === wanted)
    .map(({ id, name }) => ({ to: `/merchants/${id}`, label: name, kind: texts.merchant }));
  const suggested = wanted === '' ? [] : [...pages, ...named].slice(0, SUGGESTED_MAX);

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
    const isCode = found.kind === 'code';
    searched.code = isCode ? found.text : undefined;
    void navigate({
      to: '/search',
      search: { text: isCode ? '' : found.text } as never,
      state: { turn: crypto.randomUUID() } as never,
    });
    leave();
  };
  const choose = (to: string) => {
    if (to === '') return look();
    void navigate({ to });
    leave();
  };
  return (
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
              combobox.resetSelectedOption();
            }}
          />
        </Combobox.Target>
        <Combobox.Dropdown hidden={wanted === '' || found?.kind === 'code-with-pin'}>
          <Combobox.Options aria-label={texts.label}>
            {found && found.kind !== 'code-with-pin' && (
              <Combobox.Option value="">
                {texts.kinds[found.kind]} <b className="mono">{found.kind === 'code' ? '' : found.text}</b>
              </Combobox.Option>
            )}
            {suggested.map(({ to, label, kind }) => (
              <Combobox.Option value={to} key={to}>
                {label} <span className="quiet">· {kind}</span>
              </Combobox.Option>
            ))}
          </Combobox.Options>
        </Combobox.Dropdown>
      </Combobox>
    </form>
  );
}
