import { Link, useNavigate } from '@tanstack/react-router';
import { audited } from '../../generated/audited.ts';
import { useTexts } from '../i18n/index.tsx';
import { Actions } from '../ui/actions.tsx';
import { ShortDifference, Subject } from '../ui/changes.tsx';
import type { Item } from '../ui/item.ts';
import { ListPage } from '../ui/page.tsx';
import { addressOf } from '../ui/places.ts';
import { useWords } from '../ui/words.ts';

/** The cells of a list of the audit: the name of the changed thing, the change, and the reason. */
export function useAuditCell() {
  const { title } = useWords();
  const { reason: because } = useTexts().audit;
  return (name: string, { action, subject, before, after, reason }: Item) => {
    if (name === 'action') return <span title={String(action)}>{title(String(action))}</span>;
    if (name === 'effect')
      return (
        <>
          <ShortDifference before={before} after={after} />
          {reason && (
            <span className="long quiet anywhere">
              {because} <bdi>{String(reason)}</bdi>
            </span>
          )}
        </>
      );
    if (name !== 'subject') return undefined;
    const address = addressOf(String(subject));
    const shown = <Subject of={String(subject)} within={after} />;
    if (address === undefined) return shown;
    return (
      <Link to={address} className="quiet-link">
        {shown}
      </Link>
    );
  };
}

export function Screen() {
  const texts = useTexts();
  const cell = useAuditCell();
  const navigate = useNavigate();
  const { title } = useWords();
  const actions = audited
    .map((action) => ({ value: action, label: title(action) }))
    .sort((one, other) => one.label.localeCompare(other.label));
  return (
    <ListPage
      name="audit"
      note={texts.audit.lead}
      of="audit.list"
      columns={['occurredAt', 'action', 'subject', 'actor', 'effect']}
      narrow={['occurredAt', 'action', 'actor']}
      cell={cell}
      choices={{ action: actions }}
    >
      <Actions acts={[{ name: 'audit.verify', onDone: ({ id }) => void navigate({ to: `/jobs/${id}` }) }]} />
    </ListPage>
  );
}
