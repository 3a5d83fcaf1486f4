import { Modal, type ModalProps } from '@mantine/core';
import { useTexts } from '../i18n/index.tsx';

/** A ref of a form: its dialog begins with the focus in the first field. */
export const focusesFirst = (form: HTMLFormElement | null) =>
  form?.querySelector('input:not([type=hidden]), textarea')?.setAttribute('data-autofocus', '');

/** A dialog, whose button to close it has a name for screen readers. */
export function Dialog(props: ModalProps) {
  const { dismiss } = useTexts();
  return <Modal centered closeButtonProps={{ 'aria-label': dismiss }} {...props} />;
}
