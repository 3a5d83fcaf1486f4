import { SimpleGrid } from '@mantine/core';
import { ChartPanel } from '../charts/panel.tsx';
import {
  FLOATS_MAX,
  readCohorts,
  readDeclines,
  readExpiring,
  readFloats,
  readMonths,
  readOutstanding,
} from '../charts/read.ts';
import { useTexts } from '../i18n/index.tsx';
import { useApp } from '../ui/app.tsx';
import { useFormat } from '../ui/format.ts';

/** The books as charts, each with its table. */
export function Charts() {
  const texts = useTexts().chart;
  const { offers } = useApp();
  const format = useFormat();
  return (
    <SimpleGrid cols={{ base: 1, md: 2 }} spacing="lg">
      {offers('books.report') && (
        <>
          <ChartPanel
            title={texts.outstanding}
            name="outstanding"
            read={readOutstanding}
            kind="area"
            x="day"
            series={['owed', 'outstanding']}
          />
          <ChartPanel title={texts.months} name="months" read={readMonths} kind="bars" x="month" />
          <ChartPanel
            title={texts.expiring}
            name="expiring"
            read={readExpiring}
            kind="bars"
            x="month"
            series={['outstanding']}
          />
          <ChartPanel
            title={texts.curve}
            note={texts.curveNote}
            name="curve"
            read={readCohorts}
            kind="lines"
            x="monthsSince"
            unit="percent"
          />
        </>
      )}
      {offers('float.show') && (
        <ChartPanel
          title={texts.floats}
          note={texts.floatsNote(format.number(FLOATS_MAX))}
          name="floats"
          read={readFloats}
          kind="ranks"
          x="merchant"
          series={['daysLeft']}
          unit="days"
        />
      )}
      {offers('decline.count') && (
        <ChartPanel
          title={texts.declines}
          note={texts.declinesNote}
          name="declines"
          read={readDeclines}
          kind="ranks"
          x="code"
          series={['declines']}
          unit="count"
        />
      )}
    </SimpleGrid>
  );
}
