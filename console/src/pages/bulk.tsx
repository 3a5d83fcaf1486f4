import { Alert, Button, Group, Stack, Text } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import type { Answer } from '../answers.ts';
import { send } from '../api.ts';
import type { Field } from '../described.ts';
import { useTexts } from '../i18n/index.tsx';
import { guess } from '../search.ts';
import type { Input } from '../ui/act.ts';
import { Actions } from '../ui/actions.tsx';
import { useFilters } from '../ui/address.ts';
import { useApp } from '../ui/app.tsx';
import { Choice } from '../ui/choice.tsx';
import { FieldInput } from '../ui/field.tsx';
import { useFormat } from '../ui/format.ts';
import { useHeld } from '../ui/held.ts';
import { Rows } from '../ui/list.tsx';
import { PageHead } from '../ui/page.tsx';
import { Panel, Problem, submits } from '../ui/parts.tsx';
import { useWords } from '../ui/words.ts';

type Preview = Answer<'voucher.bulk-preview'>;

/** A text with more digits could be a code with its PIN. */
const SERIAL = /^[1-9]\d{0,14}$/;
const PREVIEW = 'voucher.bulk-preview';

/** The fields by which vouchers are named. */
const NAMED_BY = {
  batch: ['batch'],
  list: ['serialNumbers'],
  range: ['from', 'to'],
} as const satisfies Record<string, readonly string[]>;

/** Changes many vouchers: first a preview, row by row, then a job. */
export function Screen() {
  const texts = useTexts();
  const { action } = useWords();
  const { operations, offers } = useApp();
  const { batch, serialNumbers, action: first = 'block' } = useFilters();
  const [values, setValues] = useState<Input>({
    action: first,
    batch,
    serialNumbers: serialNumbers?.split(','),
  });
  const [isTyped, setTyped] = useState(false);
  useHeld(() => (isTyped ? 'input' : undefined));
  const [by, setBy] = useState<keyof typeof NAMED_BY>(batch ? 'batch' : 'list');
  const isAsked = ({ name }: Field) =>
    name === 'action' ||
    NAMED_BY[by].some((each) => each === name) ||
    (name === 'expiry' && values['action'] === 'extend');
  const isOffered = (option: string) => option !== 'cancel' || offers('voucher.bulk-cancel');
  const fields = operations?.get(PREVIEW)?.fields.filter(isAsked) ?? [];
  const { data, error, isPending, mutate, reset } = useMutation({
    mutationFn: async () => {
      const asked = fields.map(({ name }) => [name, values[name]]);
      const given = {
        batch: undefined,
        serialNumbers: undefined,
        from: undefined,
        to: undefined,
        expiry: undefined,
        ...Object.fromEntries(asked),
      };
      if (given.serialNumbers) given.serialNumbers = serialsOf(given.serialNumbers, texts);
      return { given, preview: await send<Preview>('POST', '/vouchers/bulk/preview', { body: given }) };
    },
  });
  return (
    <>
      <PageHead title={action('voucher.bulk')} back="vouchers" of="voucher.bulk" />
      <Stack>
        <Panel padded>
          <form onSubmit={submits(mutate)}>
            <Stack maw={520}>
              {by !== 'batch' && (
                <Choice
                  label={texts.bulk.by}
                  of={{ list: texts.bulk.list, range: texts.bulk.range }}
                  value={by}
                  onChange={(chosen) => {
                    setBy(chosen);
                    reset();
                  }}
                />
              )}
              {fields.map((field) => (
                <FieldInput
                  key={field.name}
                  operation={PREVIEW}
                  field={{ ...field, required: true, options: field.options.filter(isOffered) }}
                  value={values[field.name]}
                  onChange={(value) => {
                    setTyped(true);
                    setValues({ ...values, [field.name]: value });
                    reset();
                  }}
                />
              ))}
              <Group>
                <Button type="submit" size="sm" loading={isPending}>
                  {texts.bulk.preview}
                </Button>
              </Group>
            </Stack>
          </form>
        </Panel>
        {error && <Problem error={error} />}
        {data && <Previewed {...data} />}
      </Stack>
    </>
  );
}

/** @throws Error for the first text that is no serial number */
function serialsOf(lines: readonly string[], { bulk, search }: ReturnType<typeof useTexts>): string[] {
  const serials = [...new Set(lines.flatMap((line) => line.split(/[\s,;]+/)).filter(Boolean))];
  const other = serials.find((each) => !SERIAL.test(each));
  if (other === undefined) return serials;
  throw new Error(guess(other)?.kind === 'code-with-pin' ? search.isSecret : bulk.notSerial(other));
}

function Previewed({ preview, given }: { preview: Preview; given: Input }) {
  const texts = useTexts().bulk;
  const { word } = useWords();
  const format = useFormat();
  const navigate = useNavigate();
  const what = String(given['action']);
  const changes = format.number(preview.changes);
  const worth = texts.worth(
    preview.merchants.join(', '),
    preview.worth.map(({ currency, amount }) => format.money(amount, currency)).join(', '),
  );
  const act = {
    name: what === 'cancel' ? 'voucher.bulk-cancel' : 'voucher.bulk',
    label: texts.run(word(what), changes),
    given,
    isDanger: what !== 'extend',
    effect: preview.merchants.length > 0 ? worth : changes,
    onDone: ({ id }: Input) => void (id && navigate({ to: `/jobs/${id}`, ignoreBlocker: true })),
  };
  return (
    <>
      <Alert color={preview.declined > 0 ? 'orange' : 'accent'} variant="light">
        {texts.effect(format.number(preview.total), changes, format.number(preview.declined))}
        {preview.merchants.length > 0 && <Text size="sm">{worth}</Text>}
      </Alert>
      <Group>
        <Actions primary acts={[act]} />
      </Group>
      {preview.rows.length > 0 && (
        <Panel title={texts.declined}>
          <Rows items={preview.rows} columns={['serialNumber', 'state', 'declined']} />
        </Panel>
      )}
    </>
  );
}
