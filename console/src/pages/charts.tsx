import { SimpleGrid } from '@mantine/core';
import { ChartPanel, FloatsPanel, OutstandingPanel } from '../charts/panel.tsx';
import { readCohorts, readDeclines, readExpiring, readMonths } from '../charts/read.ts';
import { useTexts } from '../i18n/index.tsx';
import { useApp } from '../ui/app.tsx';

/** The books as charts, each with its table. */
export function Charts() {
  const texts = useTexts().chart;
  const { offers } = useApp();
  return (
    <SimpleGrid cols={{ base: 1, md: 2 }} spacing="lg">
      {offers('books.report') && (
        <>
          <OutstandingPanel />
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
      {offers('float.show') && <FloatsPanel />}
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
