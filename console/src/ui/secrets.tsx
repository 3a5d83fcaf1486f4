import { Alert, Button, CopyButton, Group, Stack, Text } from '@mantine/core';
import { useTexts } from '../i18n/index.tsx';
import { useApp } from './app.tsx';
import { save } from './csv.ts';
import { useWords } from './words.ts';

/** Copies a text. */
function CopyText({ text, label, isFirst = false }: { text: string; label?: string; isFirst?: boolean }) {
  const { copied: done, copy: begin } = useTexts().action;
  return (
    <CopyButton value={text}>
      {({ copied, copy }) => (
        <Button variant="default" size="sm" autoFocus={isFirst} onClick={copy}>
          {copied ? done : (label ?? begin)}
        </Button>
      )}
    </CopyButton>
  );
}

/** The recovery codes of a person, to be kept: as a text, as a file, or on paper. */
export function RecoveryCodes({ codes }: { codes: readonly string[] }) {
  const { download } = useTexts().action;
  const text = codes.join('\n');
  return (
    <>
      <pre className="code">{text}</pre>
      <Group gap={8}>
        <CopyText text={text} />
        <Button
          variant="default"
          size="sm"
          onClick={() => save('scrip-recovery-codes.txt', new Blob([`${text}\n`], { type: 'text/plain' }))}
        >
          {download}
        </Button>
      </Group>
    </>
  );
}

type Props = {
  readonly secrets: Readonly<Record<string, unknown>>;
  /** The person for whom a passphrase is: the one who proposed what was approved. */
  readonly whose?: string | undefined;
  close(): void;
};

/** A secret that is shown once stays on the page until the user closes it. */
export function Secrets({ secrets, whose, close }: Props) {
  const { action: texts, close: closeLabel } = useTexts();
  const { label } = useWords();
  const { shapeOf } = useApp();
  const shown = Object.entries(secrets)
    .filter(([name, value]) => (shapeOf(name).isSecret || name === 'keyId') && value)
    // A link is sent to somebody, so it needs the address of this service.
    .map(([name, value]) => [name, name === 'link' ? new URL(String(value), location.origin).href : value]);
  return (
    <Stack gap="md">
      <Alert color="orange" variant="light">
        {texts.secret}
        {whose && secrets['passphrase'] ? ` ${texts.secretFor(whose)}` : undefined}
      </Alert>
      {shown.map(([name, value], index) => (
        <div key={String(name)}>
          <Text size="sm" className="quiet" mb={4}>
            {label(String(name))}
          </Text>
          <Group wrap="nowrap" gap={8} align="flex-start">
            <pre className="code" style={{ flex: 1 }}>
              {String(value)}
            </pre>
            <CopyText text={String(value)} isFirst={index === 0} />
          </Group>
        </div>
      ))}
      <Group justify="flex-end" gap={8}>
        {shown.length > 1 && (
          <CopyText
            label={texts.copyAll}
            text={shown.map(([name, value]) => `${label(String(name))}: ${value}`).join('\n')}
          />
        )}
        <Button size="sm" onClick={close}>
          {closeLabel}
        </Button>
      </Group>
    </Stack>
  );
}
