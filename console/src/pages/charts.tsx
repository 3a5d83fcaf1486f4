import { SimpleGrid } from '@mantine/core';
import { CHARTS, ChartPanel } from '../charts/panel.tsx';
import { useApp } from '../ui/app.tsx';

const NAMES = Object.keys(CHARTS) as (keyof typeof CHARTS)[];

/** The books as charts, each with its table. */
export function Charts() {
  const { offers } = useApp();
  return (
    <SimpleGrid cols={{ base: 1, md: 2 }} spacing="lg">
      {NAMES.filter((name) => offers(CHARTS[name].needs)).map((name) => (
        <ChartPanel key={name} name={name} />
      ))}
    </SimpleGrid>
  );
}
