import { useQuery } from '@tanstack/react-query';
import { get, type Page } from '../api.ts';
import { useTexts } from '../i18n/index.tsx';
import { useApp } from './app.tsx';
import { useFormat } from './format.ts';
import type { Item } from './list.tsx';

const SHOWN_MS = 7 * 86_400_000;

/** What everybody who works here should know: the service is away, glass was broken, one person decides alone. */
export function Banners() {
  const texts = useTexts().banner;
  const { door, isAway, offers } = useApp();
  const isOperator = door === 'operator';
  return (
    <>
      {isAway && (
        <div className="banner" role="status">
          {texts.away}
        </div>
      )}
      {isOperator && offers('settings.show') && <Alone />}
      {isOperator && offers('approval.list') && <BrokenGlass />}
    </>
  );
}

function Alone() {
  const texts = useTexts().banner;
  const { data } = useQuery({
    queryKey: ['settings'],
    queryFn: () => get<Item>('/settings'),
    staleTime: 60_000,
    retry: false,
  });
  return data?.['approvalMode'] === 'delay' ? <div className="banner">{texts.alone}</div> : null;
}

function BrokenGlass() {
  const texts = useTexts().banner;
  const format = useFormat();
  const { data } = useQuery({
    queryKey: ['approvals', 'glass'],
    queryFn: () => get<Page<Item>>('/approvals', { limit: 50 }),
    staleTime: 60_000,
    retry: false,
  });
  const broken = data?.items.filter(
    ({ breakGlass, decidedAt }) =>
      breakGlass === true && Date.now() - Date.parse(String(decidedAt)) < SHOWN_MS,
  );
  const last = broken?.[0];
  return last ? (
    <div className="banner">
      {texts.glass} {String(last['operation'])}, {format.time(String(last['decidedAt']))}:{' '}
      {String(last['comment'] ?? last['reason'] ?? '–')}
    </div>
  ) : null;
}
