import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { get, type Page, type Query } from '../api.ts';
import { useTexts } from '../i18n/index.tsx';
import { readDays } from '../reports.ts';
import { useApp } from '../ui/app.tsx';
import { useFormat } from '../ui/format.ts';
import type { Item } from '../ui/list.tsx';
import { Panel } from '../ui/parts.tsx';

/** The number of low floats that are named. */
const NAMED_MAX = 3;

/** Matters that need attention, with links to them. */
export function Attention() {
  const { overview: texts, chart } = useTexts();
  const { offers } = useApp();
  const format = useFormat();
  const waiting = useItems('/approvals', { forMe: true, limit: 50 }, offers('approval.list'));
  const running = useItems('/batches', { status: 'PROCESSING', limit: 50 }, offers('batch.list'));
  const low = useItems('/floats/low', { limit: 50 }, offers('float.low'));
  const endpoints = useItems('/webhooks', { limit: 200 }, offers('webhook.list'));
  const { data: days } = useQuery({
    queryKey: ['days'],
    queryFn: readDays,
    enabled: offers('books.days'),
    retry: false,
  });
  const failing = endpoints?.filter((item) => item['failingSince'] || item['enabled'] === false);
  const closed = days?.filter(({ state }) => state === 'closed').at(-1);
  const late = days?.filter(({ state }) => state === 'closing').length ?? 0;
  return (
    <Panel title={texts.attention}>
      <ul className="plain-list">
        <Line to="/approvals" label={texts.approvals} count={waiting?.length} isAlert />
        <Line to="/batches?status=PROCESSING" label={texts.running} count={running?.length} />
        <Line
          to="/merchants"
          label={texts.lowFloats}
          count={low?.length}
          isAlert
          note={low
            ?.slice(0, NAMED_MAX)
            .map(({ merchant, daysLeft }) =>
              daysLeft === null ? merchant : `${merchant}: ${chart.lasts(Number(daysLeft))}`,
            )
            .join(', ')}
        />
        <Line to="/webhooks" label={texts.webhooks} count={failing?.length} isAlert />
        {days && (
          <li className="line">
            <Link to="/books" className="quiet-link">
              {texts.lastClose}
            </Link>
            <span className={late > 1 ? 'warn' : undefined}>
              {closed ? format.day(closed.day) : texts.none}
            </span>
          </li>
        )}
      </ul>
    </Panel>
  );
}

function useItems(path: string, query: Query, enabled: boolean): readonly Item[] | undefined {
  const { data } = useQuery({
    queryKey: ['attention', path],
    queryFn: () => get<Page<Item>>(path, query),
    enabled,
    refetchInterval: 15_000,
    retry: false,
  });
  return data?.items;
}

type LineProps = {
  to: string;
  label: string;
  count: number | undefined;
  isAlert?: boolean;
  note?: string;
};

function Line({ to, label, count, isAlert = false, note }: LineProps) {
  if (count === undefined) return null;
  return (
    <li className="line">
      <span>
        <Link to={to} className="quiet-link">
          {label}
        </Link>
        {note && <small className="quiet">{note}</small>}
      </span>
      <b className={isAlert && count > 0 ? 'warn' : count === 0 ? 'quiet' : undefined}>{count}</b>
    </li>
  );
}
