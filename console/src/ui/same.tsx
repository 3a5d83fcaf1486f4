import { ActionIcon, Popover, Stack, Text } from '@mantine/core';
import { useTexts } from '../i18n/index.tsx';
import { useApp } from './app.tsx';
import { commandOf } from './command.ts';
import { Icon } from './icons.tsx';

/** The content of a page as a command and as a request. */
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
  // The address of a page has more than its filters, such as the columns.
  const filled = operation.fields.flatMap(({ name: field }): [string, string][] =>
    given[field] ? [[field, given[field]]] : [],
  );
  const isInPath = ([field]: [string, string]) => operation.path.includes(`{${field}}`);
  const path = filled.reduce((text, [field, value]) => text.replace(`{${field}}`, value), operation.path);
  const rest = filled.filter((each) => !isInPath(each));
  const command = commandOf(operation, given);
  const query = rest.length > 0 ? `?${new URLSearchParams(rest)}` : '';
  const url = `${location.origin}/${door}/v1${path}${query}`;
  const method = operation.method === 'GET' ? '' : `-X ${operation.method} `;
  return (
    <Popover width={460} position="bottom-end" shadow="md" radius={8} trapFocus>
      <Popover.Target>
        <ActionIcon variant="default" aria-label={texts.title} title={texts.title}>
          <Icon name="docs" size={16} />
        </ActionIcon>
      </Popover.Target>
      <Popover.Dropdown maw="92vw">
        <Stack gap={6}>
          {command && (
            <>
              <Text size="xs" className="quiet">
                {texts.cli}
              </Text>
              <pre className="code">{command}</pre>
            </>
          )}
          <Text size="xs" className="quiet">
            {texts.api}
          </Text>
          <pre className="code">{`curl ${method}-H "Authorization: Bearer $TOKEN" '${url}'`}</pre>
        </Stack>
      </Popover.Dropdown>
    </Popover>
  );
}
