import { PasswordInput, type PasswordInputProps } from '@mantine/core';
import { useTexts } from '../i18n/index.tsx';

/** A secret that is typed, and can be shown. */
export function PasswordField(props: PasswordInputProps) {
  const { reveal } = useTexts().action;
  return <PasswordInput {...props} visibilityToggleButtonProps={{ 'aria-label': reveal }} />;
}
