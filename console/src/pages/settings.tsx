import { Stack } from '@mantine/core';
import { useTexts } from '../i18n/index.tsx';
import { Actions } from '../ui/actions.tsx';
import { useApp } from '../ui/app.tsx';
import { Head, Panel } from '../ui/parts.tsx';
import { Same } from '../ui/same.tsx';
import { useThing } from '../ui/thing.tsx';
import { Fields } from '../ui/value.tsx';

/** The operations that need an approval, and the end of a day. */
export function Screen() {
  const texts = useTexts();
  const { offers } = useApp();
  const { thing, instead } = useThing('/settings');
  const { thing: books } = useThing('/books', { enabled: offers('books.show') });
  if (!thing) return instead;
  return (
    <>
      <Head title={texts.nav.settings}>
        <Same name="settings.show" />
      </Head>
      <Stack gap="lg" maw={720}>
        <Panel
          title={texts.settings.fourEyes}
          aside={<Actions acts={[{ name: 'settings.set', current: thing, source: '/settings' }]} />}
          padded
        >
          <Fields of={thing} show={['approvalMode', 'approvalAmount', 'approvalVouchers']} />
        </Panel>
        {books && (
          <Panel
            title={texts.settings.day}
            aside={<Actions acts={[{ name: 'books.set', current: books, source: '/books' }]} />}
            padded
          >
            <Fields of={books} show={['zone', 'graceMinutes']} />
          </Panel>
        )}
      </Stack>
    </>
  );
}
