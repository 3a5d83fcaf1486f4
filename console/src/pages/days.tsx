import { ActionIcon, Group } from '@mantine/core';
import { useState } from 'react';
import { useTexts } from '../i18n/index.tsx';
import type { Day } from '../reports.ts';
import { useFormat } from '../ui/format.ts';
import { type Item, Rows } from '../ui/list.tsx';
import { Panel } from '../ui/parts.tsx';
import { State } from '../ui/value.tsx';
import { useWords } from '../ui/words.ts';

/** Monday is the first day of the week, as in ISO 8601. */
const weekdayOf = (day: string) => (new Date(`${day}T00:00:00Z`).getUTCDay() + 6) % 7;

/** The days of the books, month by month, as a calendar with its table. */
export function Month({ days }: { days: readonly Day[] }) {
  const texts = useTexts().books;
  const { word } = useWords();
  const format = useFormat();
  const months = [...new Set(days.map(({ day }) => day.slice(0, 7)))];
  const [chosen, setChosen] = useState<string>();
  const month = chosen ?? months.at(-1);
  if (month === undefined) return null;
  const at = months.indexOf(month);
  const own = days.filter(({ day }) => day.startsWith(month));
  const first = own[0];
  const weekday = new Intl.DateTimeFormat(format.locale, { weekday: 'short', timeZone: 'UTC' });
  return (
    <div className="two even">
      <Panel
        title={format.month(month)}
        padded
        aside={
          <Group gap={4}>
            <Step label={texts.before} text="←" disabled={at <= 0} go={() => setChosen(months[at - 1])} />
            <Step
              label={texts.after}
              text="→"
              disabled={at >= months.length - 1}
              go={() => setChosen(months[at + 1])}
            />
          </Group>
        }
      >
        <div className="days" aria-hidden="true">
          {Array.from({ length: 7 }, (_, index) => (
            <small className="quiet" key={weekday.format(Date.UTC(2024, 0, 1 + index))}>
              {weekday.format(Date.UTC(2024, 0, 1 + index))}
            </small>
          ))}
          {own.map(({ day, state, rows }) => (
            <div
              key={day}
              className="day"
              data-state={state}
              style={day === first?.day ? { gridColumnStart: weekdayOf(day) + 1 } : undefined}
              title={`${format.day(day)}: ${word(state)}`}
            >
              {Number(day.slice(8))}
              {rows !== null && <small>{format.short(rows)}</small>}
            </div>
          ))}
        </div>
        <Group gap="xs" mt="md">
          <State name="closed" />
          <State name="closing" />
          <State name="open" />
        </Group>
      </Panel>
      <Panel title={texts.days}>
        <div style={{ maxHeight: 460, overflowY: 'auto' }}>
          <Rows
            items={[...own].reverse() as unknown as Item[]}
            columns={['day', 'state', 'rows', 'hash']}
            cell={(name, item) =>
              name === 'hash' && item['hash'] ? (
                <span className="mono" title={String(item['hash'])}>
                  {String(item['hash']).slice(0, 8)}
                </span>
              ) : undefined
            }
          />
        </div>
      </Panel>
    </div>
  );
}

type StepProps = { label: string; text: string; disabled: boolean; go(): void };

function Step({ label, text, disabled, go }: StepProps) {
  return (
    <ActionIcon variant="default" size={26} aria-label={label} disabled={disabled} onClick={go}>
      {text}
    </ActionIcon>
  );
}
