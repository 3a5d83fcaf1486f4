import { Alert, Button, Group, Select, Stack, Textarea, TextInput } from '@mantine/core';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { type FormEvent, useState } from 'react';
import type { Answer } from '../answers.ts';
import { send } from '../api.ts';
import { useTexts } from '../i18n/index.tsx';
import { guess } from '../search.ts';
import { Actions } from '../ui/actions.tsx';
import { useApp } from '../ui/app.tsx';
import { useFormat } from '../ui/format.ts';
import { type Filters, type Item, Rows } from '../ui/list.tsx';
import { Head, Panel, Problem } from '../ui/parts.tsx';
import { Same } from '../ui/same.tsx';
import { useWords } from '../ui/words.ts';

type Preview = Answer<'voucher.bulk-preview'>;
type Wanted = { readonly preview: Preview; readonly given: Item };

/** A text with more digits could be a code with its PIN. */
const SERIAL = /^[1-9]\d{0,14}$/;

/** Changes many vouchers: first a preview, row by row, then a job. */
export function Screen() {
  const texts = useTexts();
  const { label, word, action } = useWords();
  const format = useFormat();
  const navigate = useNavigate();
  const { operations, offers } = useApp();
  const { batch, action: first = 'block' } = useSearch({ strict: false }) as Filters;
  const [what, setWhat] = useState(first);
  const [serials, setSerials] = useState('');
  const [expiry, setExpiry] = useState('');
  const [wanted, setWanted] = useState<Wanted>();
  const [error, setError] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);
  const changes =
    operations?.get('voucher.bulk')?.fields.find(({ name }) => name === 'action')?.options ?? [];
  const choices = offers('voucher.bulk-cancel') ? [...changes, 'cancel'] : changes;

  const look = async (event: FormEvent) => {
    event.preventDefault();
    setError(undefined);
    setWanted(undefined);
    const serialNumbers = [...new Set(serials.split(/[\s,;]+/).filter(Boolean))];
    const other = batch ? undefined : serialNumbers.find((each) => !SERIAL.test(each));
    if (other !== undefined) {
      const isSecret = guess(other)?.kind === 'code-with-pin';
      return setError(new Error(isSecret ? texts.search.isSecret : texts.bulk.notSerial(other)));
    }
    setBusy(true);
    const given = {
      ...(batch ? { batch, serialNumbers: undefined } : { batch: undefined, serialNumbers }),
      ...(what !== 'cancel' && { action: what, expiry: what === 'extend' ? expiry : undefined }),
    };
    const body = { ...given, action: what };
    try {
      setWanted({ given, preview: await send<Preview>('POST', '/vouchers/bulk/preview', { body }) });
    } catch (caught) {
      setError(caught);
    } finally {
      setBusy(false);
    }
  };
  const changed = () => setWanted(undefined);
  return (
    <>
      <Head title={action('voucher.bulk').label} back={{ to: '/vouchers', label: texts.nav.vouchers }}>
        <Same name="voucher.bulk" />
      </Head>
      <Stack>
        <Panel padded>
          <form onSubmit={look}>
            <Stack maw={520}>
              <Select
                label={label('action')}
                allowDeselect={false}
                data={choices.map((value) => ({ value, label: word(value) }))}
                value={what}
                onChange={(chosen) => {
                  setWhat(chosen ?? 'block');
                  changed();
                }}
              />
              {what === 'extend' && (
                <TextInput
                  type="date"
                  label={label('expiry')}
                  required
                  value={expiry}
                  onChange={(event) => {
                    setExpiry(event.currentTarget.value);
                    changed();
                  }}
                />
              )}
              {batch ? (
                <TextInput label={label('batch')} value={batch} readOnly />
              ) : (
                <Textarea
                  label={label('serialNumbers')}
                  description={texts.bulk.hint}
                  required
                  autosize
                  minRows={5}
                  maxRows={16}
                  value={serials}
                  onChange={(event) => {
                    setSerials(event.currentTarget.value);
                    changed();
                  }}
                />
              )}
              <Group>
                <Button type="submit" size="sm" loading={isBusy}>
                  {texts.bulk.preview}
                </Button>
              </Group>
            </Stack>
          </form>
        </Panel>
        {error !== undefined && <Problem error={error} />}
        {wanted && (
          <>
            <Alert color={wanted.preview.declined > 0 ? 'orange' : 'accent'} variant="light">
              {texts.bulk.effect(
                format.number(wanted.preview.total),
                format.number(wanted.preview.changes),
                format.number(wanted.preview.declined),
              )}
            </Alert>
            <Group>
              <Actions
                primary
                acts={[
                  {
                    name: what === 'cancel' ? 'voucher.bulk-cancel' : 'voucher.bulk',
                    label: texts.bulk.run(word(what), format.number(wanted.preview.changes)),
                    given: wanted.given,
                    isDanger: what !== 'extend',
                    effect: format.number(wanted.preview.changes),
                    onDone: ({ id }) => void (id && navigate({ to: `/jobs/${id}` })),
                  },
                ]}
              />
            </Group>
            {wanted.preview.rows.length > 0 && (
              <Panel title={texts.bulk.declined}>
                <Rows items={wanted.preview.rows} columns={['serialNumber', 'state', 'declined']} />
              </Panel>
            )}
          </>
        )}
      </Stack>
    </>
  );
}
