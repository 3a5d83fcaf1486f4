import { Alert, Button, CopyButton, Group, Stack, Text } from '@mantine/core';
import { useTexts } from '../i18n/index.tsx';
import { useApp } from './app.tsx';
import { useWords } from './words.ts';

/** A secret that is shown once stays on the page until the user closes it. */
export function Secrets({ secrets, close }: { secrets: Readonly<Record<string, unknown>>; close(): void }) {
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
            <CopyButton value={String(value)}>
              {({ copied, copy }) => (
                <Button variant="default" size="sm" autoFocus={index === 0} onClick={copy}>
                  {copied ? texts.copied : texts.copy}
                </Button>
              )}
            </CopyButton>
          </Group>
        </div>
      ))}
      <Group justify="flex-end">
        <Button size="sm" onClick={close}>
          {closeLabel}
        </Button>
      </Group>
    </Stack>
  );
}
