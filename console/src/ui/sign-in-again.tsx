import './dialog-styles.ts';
import { Modal } from '@mantine/core';
import { useTexts } from '../i18n/index.tsx';
import { SignInForm } from './sign-in-form.tsx';

/** The sign-in of a person whose session has ended, in front of the page. */
export function SignInAgain({ email }: { readonly email: string }) {
  const texts = useTexts().signIn;
  return (
    <Modal opened onClose={() => {}} withCloseButton={false} title={texts.again} zIndex={500} centered>
      <SignInForm email={email} onDone={() => {}} />
    </Modal>
  );
}
