import { Stack, Text } from '@mantine/core';
import { useTexts } from '../i18n/index.tsx';
import { useApp } from '../ui/app.tsx';
import { Head, Panel } from '../ui/parts.tsx';
import { Same } from '../ui/same.tsx';
import { Floats } from './numbers.tsx';
import { Statement } from './statement.tsx';

/** The float, how to pay in, and its movements. */
export function Screen() {
  const texts = useTexts();
  const { session, offers } = useApp();
  return (
    <>
      <Head title={texts.nav.floats}>
        <Same name="float.show" />
      </Head>
      <Stack gap="lg">
        <div className="stats">
          <Floats />
        </div>
        <Panel title={texts.float.payIn} padded>
          <Text size="sm">{texts.float.payInHow}</Text>
          <pre className="code" style={{ marginTop: 8 }}>
            {texts.float.reference(session?.user.merchantId ?? '')}
          </pre>
        </Panel>
        {offers('books.report') && <Statement />}
      </Stack>
    </>
  );
}
