import { Anchor, Text } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import type { Answer } from '../answers.ts';
import { agreements } from '../i18n/de.agreements.ts';
import { useLanguage, useTexts } from '../i18n/index.tsx';
import { useShown } from './changes.tsx';

/** What two people agree on, as the service states it: in English, with the names of values in braces. */
export type Statement = Answer<'approval.show'>['statement'];

/** Returns a statement of an operation in the language of the page. */
export function useSentence(): (operation: string, of: Statement) => string {
  const { language, texts } = useLanguage();
  const shown = useShown();
  return (operation, { sentence, values }) =>
    ((language === 'de' && agreements[operation]) || sentence).replace(/\{(\w+)\}/g, (_all, name: string) =>
      values[name] === null ? texts.keys.byOperator : shown(name, values[name]),
    );
}

/** The sentence, with a link to what it concerns. */
export function Stated({ operation, of }: { operation: string; of: Statement }) {
  const texts = useTexts().approvals;
  const sentence = useSentence();
  const [path = '/', query = ''] = of.link.split('?');
  return (
    <>
      <Text fw={500} data-recorded="">
        {sentence(operation, of)}
      </Text>
      <Anchor
        component={Link}
        to={path}
        search={Object.fromEntries(new URLSearchParams(query)) as never}
        size="sm"
        display="block"
        mb="xs"
      >
        {texts.concerned}
      </Anchor>
    </>
  );
}
