import type { Operation } from '../described.ts';
import { useTexts } from '../i18n/index.tsx';
import { type Filters, useFilters } from '../ui/address.ts';
import { useApp } from '../ui/app.tsx';
import { List } from '../ui/list.tsx';
import { PageHead } from '../ui/page.tsx';
import { Empty } from '../ui/parts.tsx';
import { Value } from '../ui/value.tsx';
import { useWords } from '../ui/words.ts';

/** What can be narrowed further. The note of the page says the rest in words. */
const FILTERS = ['merchantId', 'issuerId', 'product'];

/** The entries of the journal behind a figure, with their sum. */
export function Screen() {
  const { entries: texts } = useTexts();
  const { operations } = useApp();
  const search = useFilters();
  const operation = operations?.get('books.entries');
  if (search['currency'] === undefined)
    return (
      <>
        <PageHead title={texts.title} />
        <Empty text={texts.none} />
      </>
    );
  return (
    <>
      <PageHead
        title={texts.title}
        note={<Note of={search} operation={operation} />}
        of="books.entries"
        given={search}
      />
      <List
        of="books.entries"
        search={search}
        filters={FILTERS}
        fixed={Object.fromEntries(Object.entries(search).filter(([name]) => !FILTERS.includes(name)))}
        columns={operation?.columns ?? []}
        narrow={['bookedAt', 'kind', 'amount']}
      />
    </>
  );
}

/** The accounts and types that are added up, and when they were booked. */
function Note({ of, operation }: { of: Filters; operation: Operation | undefined }) {
  const { kind, word } = useWords();
  const { entries: texts } = useTexts();
  const { account = '', kind: kinds = '', sum, from, to } = of;
  const named = [...account.split(','), ...kinds.split(',')]
    .filter(Boolean)
    .map((each) => kind(each, 'kind'));
  const isKnown = operation?.fields.some(({ name }) => name === 'sum');
  return (
    <>
      {[...named, sum && isKnown ? word(sum, 'sum') : undefined].filter(Boolean).join(' · ')}
      {from && (
        <>
          {' · '}
          {texts.from} <Value name="from" value={from} />
        </>
      )}
      {to && (
        <>
          {' · '}
          {texts.to} <Value name="to" value={to} />
        </>
      )}
    </>
  );
}
