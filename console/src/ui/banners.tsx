import { useQuery } from '@tanstack/react-query';
import { get } from '../api.ts';
import { useTexts } from '../i18n/index.tsx';
import { useApp } from './app.tsx';
import { useFormat } from './format.ts';
import type { Item } from './item.ts';
import { useItems } from './items.ts';
import { useWords } from './words.ts';

/**
 * Notices for everybody: the service is unavailable, somebody used --break-glass, or one person decides
 * alone.
 */
export function Banners() {
  const texts = useTexts().banner;
  const { door, isAway, offers, session } = useApp();
  const isOperator = door === 'operator';
  return (
    <section aria-label={texts.label}>
      {isAway && (
        <div className="banner" role="status">
          {texts.away}
        </div>
      )}
      {isOperator && session?.alone && <div className="banner">{texts.onlyPerson}</div>}
      {isOperator && offers('settings.show') && <Alone />}
      {isOperator && offers('audit.break-glass') && <BrokenGlass />}
    </section>
  );
}

function Alone() {
  const texts = useTexts().banner;
  const { data } = useQuery({
    queryKey: ['thing', '/settings', undefined],
    queryFn: () => get<Item>('/settings'),
  });
  return data?.['approvalMode'] === 'delay' ? <div className="banner">{texts.alone}</div> : null;
}

function BrokenGlass() {
  const texts = useTexts().banner;
  const { action } = useWords();
  const format = useFormat();
  const [last, ...others] = useItems('/audit/break-glass', { staleMs: 60_000 }) ?? [];
  if (!last) return null;
  const line = ({ action: name, actor, occurredAt, reason }: Item) => (
    <>
      {action(String(name))} · {String(actor)}, {format.time(String(occurredAt))}:{' '}
      <bdi>{String(reason ?? '–')}</bdi>
    </>
  );
  if (others.length === 0)
    return (
      <div className="banner">
        {texts.glass} {line(last)}
      </div>
    );
  return (
    <details className="banner">
      <summary>
        {texts.glass} {line(last)} <b>{texts.glassMore(others.length)}</b>
      </summary>
      <ul className="glass">
        {others.map((each) => (
          <li key={String(each['sequence'])}>{line(each)}</li>
        ))}
      </ul>
    </details>
  );
}
