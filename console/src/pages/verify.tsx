import { Alert, Button, Group } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import type { Answer } from '../answers.ts';
import { get } from '../api.ts';
import { useTexts } from '../i18n/index.tsx';
import { Rows } from '../ui/list.tsx';
import { Panel, Problem } from '../ui/parts.tsx';

type Verified = Answer<'books.verify'>;

/** Computes every closed day again, and names changed rows and closings. */
export function Verify() {
  const texts = useTexts().books;
  const { data, error, isPending, mutate } = useMutation({
    mutationFn: () => get<Verified>('/books/verify'),
  });
  return (
    <>
      <Group>
        <Button variant="default" onClick={() => mutate()} loading={isPending}>
          {texts.verify}
        </Button>
      </Group>
      {error && <Problem error={error} />}
      {data && (
        <Alert color={data.ok ? 'teal' : 'red'} variant="light">
          {data.ok ? texts.verified(data.days) : texts.broken}
        </Alert>
      )}
      {data && data.breaks.length > 0 && (
        <Panel>
          <Rows items={data.breaks} columns={Object.keys(data.breaks[0] ?? {})} />
        </Panel>
      )}
    </>
  );
}
