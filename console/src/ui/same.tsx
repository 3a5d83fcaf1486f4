import { Anchor, Code, Popover, Stack, Text } from '@mantine/core';
import { useTexts } from '../i18n/index.tsx';
import { useApp } from './app.tsx';

/** What a page shows, as a command and as a request. */
export function Same({
  name,
  given = {},
}: {
  readonly name: string;
  readonly given?: Readonly<Record<string, string | undefined>>;
}) {
  const texts = useTexts().same;
  const { door, operations } = useApp();
  const operation = operations?.get(name);
  if (!operation) return null;
  const filled = Object.entries(given).filter(([, value]) => value);
  const path = filled.reduce(
    (text, [field, value]) => text.replace(`{${field}}`, value ?? ''),
    operation.path,
  );
  const rest = filled.filter(([field]) => !operation.path.includes(`{${field}}`));
  const query = rest.length > 0 ? `?${new URLSearchParams(rest as [string, string][])}` : '';
  const inPath = filled.filter(([field]) => operation.path.includes(`{${field}}`)).map(([, value]) => value);
  const options = rest.map(
    ([field, value]) => `--${field.replace(/([A-Z])/g, '-$1').toLowerCase()} ${value}`,
  );
  return (
    <Popover width={460} position="bottom-end" withArrow>
      <Popover.Target>
        <Anchor component="button" type="button" size="sm">
          {texts.title}
        </Anchor>
      </Popover.Target>
      <Popover.Dropdown>
        <Stack gap="xs">
          {operation.command && (
            <>
              <Text size="xs" className="quiet">
                {texts.cli}
              </Text>
              <Code block>{['scrip', operation.command, ...inPath, ...options, '--json'].join(' ')}</Code>
            </>
          )}
          <Text size="xs" className="quiet">
            {texts.api}
          </Text>
          <Code
            block
          >{`curl -H "Authorization: Bearer $TOKEN" '${location.origin}/${door}/v1${path}${query}'`}</Code>
        </Stack>
      </Popover.Dropdown>
    </Popover>
  );
}
