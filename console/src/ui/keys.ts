import { useHotkeys, useLocalStorage } from '@mantine/hooks';
import { useNavigate } from '@tanstack/react-router';
import { useRef } from 'react';

/** The pages that `g` and a letter lead to, where the menu has them. */
export const GO = {
  o: '/',
  v: '/vouchers',
  t: '/transactions',
  b: '/batches',
  m: '/merchants',
  s: '/settlements',
  a: '/approvals',
} as const;

/** How long `g` waits for its letter. */
const GO_MS = 1_500;

/**
 * Whether keys of one letter do something, in every tab. Somebody who speaks to the browser, or whose hand
 * slips, turns them off (WCAG 2.1.4).
 */
export const useSingleKeys = () =>
  useLocalStorage<'on' | 'off'>({
    key: 'scrip.keys',
    defaultValue: 'on',
    getInitialValueInEffect: false,
    serialize: String,
    deserialize: (text) => (text === 'off' ? 'off' : 'on'),
  });

/** Moves the focus to the row before or after the focused one; at first, to the first row. */
function focusRow(step: 1 | -1): void {
  const rows = [...document.querySelectorAll<HTMLElement>('.row-link')];
  const at = rows.findIndex((row) => row.closest('tr')?.contains(document.activeElement));
  rows[at < 0 ? 0 : at + step]?.focus();
}

/**
 * Listens to the keys that work on every page.
 * @param offered the addresses of the menu
 * @param help shows which keys there are
 */
export function useKeys(offered: readonly string[], help: () => void): void {
  const [single] = useSingleKeys();
  const navigate = useNavigate();
  const goesAt = useRef(0);
  const go = (to: string) => {
    if (Date.now() - goesAt.current < GO_MS && offered.includes(to)) void navigate({ to });
    goesAt.current = 0;
  };
  const keys: [string, (event: KeyboardEvent) => void][] = [
    ['j', () => focusRow(1)],
    ['k', () => focusRow(-1)],
    ['shift+?', help],
    [
      'g',
      () => {
        goesAt.current = Date.now();
      },
    ],
    ...Object.entries(GO).map(([key, to]): [string, () => void] => [key, () => go(to)]),
  ];
  // A dialog has its own keys.
  const within = ([key, act]: (typeof keys)[number]): (typeof keys)[number] => [
    key,
    (event) => document.querySelector('[aria-modal]') ?? act(event),
  ];
  useHotkeys(single === 'on' ? keys.map(within) : []);
}
