import { useBlocker } from '@tanstack/react-router';
import { useTexts } from '../i18n/index.tsx';

/** What would be lost with a form. */
export type Held = 'input' | 'secret' | undefined;

/** Asks before the page of a form is left. @returns whether the form may be left, which asks too */
export function useHeld(what: () => Held): () => boolean {
  const { throwAway, secret } = useTexts().action;
  const mayLeave = () => what() === undefined || confirm(what() === 'secret' ? secret : throwAway);
  useBlocker({ shouldBlockFn: () => !mayLeave(), enableBeforeUnload: () => what() !== undefined });
  return mayLeave;
}
