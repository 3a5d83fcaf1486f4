import './dialog-styles.ts';
import { Modal, type ModalProps } from '@mantine/core';
import { useEffect, useState } from 'react';
import { useTexts } from '../i18n/index.tsx';

/** A ref of a form: its dialog begins with the focus in the first field. */
export const focusesFirst = (form: HTMLFormElement | null) =>
  form?.querySelector('input:not([type=hidden]), textarea')?.setAttribute('data-autofocus', '');

/** A dialog, whose button to close it has a name for screen readers. */
export function Dialog({ opened, ...props }: ModalProps) {
  const { dismiss } = useTexts();
  // It opens after it was there closed: only then it remembers where the focus was.
  const [isThere, setThere] = useState(false);
  useEffect(() => setThere(true), []);
  return (
    <Modal centered opened={isThere && opened} closeButtonProps={{ 'aria-label': dismiss }} {...props} />
  );
}
