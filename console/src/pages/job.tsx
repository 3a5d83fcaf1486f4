import { Anchor, Progress, Stack, Text } from '@mantine/core';
import type { Answer } from '../answers.ts';
import { UNDECLARED } from '../figures.ts';
import { useTexts } from '../i18n/index.tsx';
import { useParam } from '../ui/address.ts';
import { fieldsOf } from '../ui/change-rows.ts';
import { useFormat } from '../ui/format.ts';
import type { Item } from '../ui/item.ts';
import { List, Rows } from '../ui/list.tsx';
import { PageHead } from '../ui/page.tsx';
import { Panel } from '../ui/parts.tsx';
import { useThing } from '../ui/thing.tsx';
import { Fields, State } from '../ui/value.tsx';
import { useWords } from '../ui/words.ts';

type Job = Answer<'job.show'>;

/** What the head of the page and its progress say. */
const IN_HEAD = ['id', 'operation', 'state', 'total', 'done', 'failed', 'input'];

const isRunning = ({ state }: Job) => state === 'WAITING' || state === 'RUNNING';

/** A job: its progress, also after a reload, and its result. */
export function Thing() {
  const texts = useTexts();
  const { action, check: checkName, word } = useWords();
  const format = useFormat();
  const id = useParam('id');
  const { thing, instead } = useThing<Job>(`/jobs/${id}`, {
    refetchMs: (job) => (isRunning(job) ? 700 : false),
  });
  if (!thing) return instead;
  const { done, total, failed } = thing;
  const input = Object.entries(fieldsOf(thing.input)).map(([name, value]) => [
    name,
    typeof value === 'string' ? word(value, name) : value,
  ]);
  const result = thing.result as Item | null;
  const checkCell = (column: string, { name: check }: Item) =>
    column === 'name' ? checkName(String(check)) : undefined;
  const checks = ((result?.['checks'] ?? []) as Item[]).map((check) => ({
    ...check,
    state: check['ok'] ? 'ok' : 'differs',
  }));
  return (
    <>
      <PageHead
        back="system"
        title={action(thing.operation)}
        state={thing.state}
        acts={[isRunning(thing) && { name: 'job.cancel', given: { id }, isDanger: true }]}
        of="job.show"
        given={{ id }}
      />
      <Stack>
        <Panel padded>
          {total > 0 && (
            <Text size="sm" mb={6}>
              {texts.job.progress(format.number(done), format.number(total), format.number(failed))}
            </Text>
          )}
          {(total > 0 || isRunning(thing)) && (
            <Progress
              value={total === 0 ? 100 : (100 * done) / total}
              animated={isRunning(thing)}
              aria-label={texts.job.label}
              mb="md"
            />
          )}
          <Fields of={{ ...Object.fromEntries(input), ...thing }} without={IN_HEAD} />
        </Panel>
        {result && 'ok' in result && (
          <Text className={result['ok'] ? 'ok' : 'bad'} fw={600}>
            {result['ok'] ? texts.system.ok : texts.system.differs}
          </Text>
        )}
        {checks.length > 0 && (
          <Panel>
            <Rows
              items={checks}
              columns={['name', 'state', 'checked', 'differing']}
              cell={checkCell}
              figures={{ checked: UNDECLARED.count, differing: UNDECLARED.count }}
            />
          </Panel>
        )}
        {thing.operation.startsWith('voucher.bulk') && (
          <>
            <Anchor href={`/operator/v1/jobs/${id}/rows.csv`} size="sm">
              {texts.job.file}
            </Anchor>
            <List
              of="job.rows"
              fixed={{ id }}
              runs={isRunning(thing)}
              narrow={['subject', 'outcome', 'message']}
              cell={(name, { outcome }) =>
                name === 'outcome' && typeof outcome === 'string' ? <Outcome of={outcome} /> : undefined
              }
            />
          </>
        )}
      </Stack>
    </>
  );
}

/** Whether a row was changed, or why not. */
function Outcome({ of }: { of: string }) {
  const { codes } = useTexts();
  return of === 'ok' ? <State name="changed" /> : <span className="bad">{codes[of] ?? of}</span>;
}
