import { Checkbox, Kbd, Stack } from '@mantine/core';
import { useTexts } from '../i18n/index.tsx';
import { Dialog } from './dialog.tsx';
import { GO, useSingleKeys } from './keys.ts';

type KeyboardProps = { opened: boolean; close(): void; offered: readonly string[] };

/** Which keys there are, and whether those of one letter are on. */
export function Keyboard({ opened, close, offered }: KeyboardProps) {
  const { keyboard: texts, nav } = useTexts();
  const [single, setSingle] = useSingleKeys();
  const places = { o: nav.overview, v: nav.vouchers, t: nav.transactions, b: nav.batches };
  const others = { m: nav.merchants, s: nav.settlements, a: nav.approvals };
  const names: Readonly<Record<keyof typeof GO, string>> = { ...places, ...others };
  const going = (Object.keys(GO) as (keyof typeof GO)[]).filter((key) => offered.includes(GO[key]));
  const rows: readonly (readonly [keys: readonly string[], text: string])[] = [
    [['/'], texts.search],
    [['Ctrl', 'K'], texts.search],
    [['j'], texts.next],
    [['k'], texts.before],
    [['Enter'], texts.open],
    [['x'], texts.select],
    ...going.map((key) => [['g', key], names[key]] as const),
    [['?'], texts.title],
  ];
  return (
    <Dialog opened={opened} onClose={close} title={texts.title}>
      <Stack>
        <dl className="fields">
          {rows.map(([keys, text]) => (
            <div key={keys.join(' ')} style={{ display: 'contents' }}>
              <dt>
                {keys.map((key) => (
                  <span key={key}>
                    <Kbd size="xs">{key}</Kbd>{' '}
                  </span>
                ))}
              </dt>
              <dd>{text}</dd>
            </div>
          ))}
        </dl>
        <Checkbox
          label={texts.single}
          description={texts.singleHint}
          checked={single === 'on'}
          onChange={({ currentTarget }) => setSingle(currentTarget.checked ? 'on' : 'off')}
        />
      </Stack>
    </Dialog>
  );
}
