import { notifications } from '@mantine/notifications';
import { useQueryClient } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { useLanguage } from '../i18n/index.tsx';
import { perform } from '../operations.ts';
import type { Input } from './act.ts';
import { useApp } from './app.tsx';
import { useWords } from './words.ts';

/** The operations that take each other back. */
const PAIRS = [
  ['voucher.block', 'voucher.unblock'],
  ['merchant.suspend', 'merchant.resume'],
  ['product.off-sale', 'product.on-sale'],
  ['user.disable', 'user.enable'],
];

/** Returns a function that shows that an operation is done, with a button that takes it back if that is possible. */
export function useDone(): (name: string, input: Input, message: string) => void {
  const { texts, refusalOf } = useLanguage();
  const { undo: text, done } = texts.action;
  const client = useQueryClient();
  const { operations, offers } = useApp();
  const { action } = useWords();
  return (name, input, message) => {
    const other = PAIRS.find((pair) => pair.includes(name))?.find((each) => each !== name) ?? '';
    const operation = offers(other) ? operations?.get(other) : undefined;
    const id = crypto.randomUUID();
    const show = (shown: ReactNode) => notifications.show({ id, message: shown });
    if (!operation) return void show(message);
    const undo = async () => {
      notifications.hide(id);
      // What does not work, such as with too old a second factor, is done on the page.
      const outcome = await perform(operation, { ...input, reason: undefined }, id).then(
        () => `${action(other)}: ${done}`,
        ({ message }: Error) => refusalOf?.(message, String) ?? message,
      );
      await client.invalidateQueries();
      notifications.show({ message: outcome });
    };
    show(
      <>
        {message}{' '}
        <button type="button" className="text-button" onClick={() => void undo()}>
          {text}
        </button>
      </>,
    );
  };
}
