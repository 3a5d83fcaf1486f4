import { Alert, Button, Group, Stack, Text } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { type ReactNode, useRef, useState } from 'react';
import { ApiProblem, type Download, get } from '../api.ts';
import type { Field, Operation } from '../described.ts';
import { useLanguage, useTexts } from '../i18n/index.tsx';
import { perform } from '../operations.ts';
import type { Act, Input } from './act.ts';
import { useApp } from './app.tsx';
import { type Change, Changes } from './changes.tsx';
import { useCost } from './cost.ts';
import { save } from './csv.ts';
import { focusesFirst } from './dialog.tsx';
import { FieldInput, textOf } from './field.tsx';
import type { Held } from './held.ts';
import { intoView, Problem, submits } from './parts.tsx';
import { Secrets } from './secrets.tsx';
import { sectionsOf } from './sections.ts';
import { Stated, type Statement } from './statement.tsx';
import { StepUp } from './step-up.tsx';
import { useDone } from './undo.tsx';
import { useWords } from './words.ts';

type Props = { act: Act; operation: Operation; hold(held: Held): void; close(): void };
type Answer = Readonly<Record<string, unknown>>;

const isEqual = (one: unknown, other: unknown) => JSON.stringify(one) === JSON.stringify(other);

/** Such as no drafts, or nothing sent again. The text comes with the form, so that no other page loads it. */
const NOTHING = { en: 'nothing was due', de: 'nichts war fällig' };

/** Whether an operation that answers with lists or counts found nothing to do. */
function isNothing(answer: Answer): boolean {
  const values = Object.values(answer).filter((value) => value !== null);
  return (
    values.length > 0 && values.every((value) => value === 0 || (Array.isArray(value) && value.length === 0))
  );
}

/** What the form of an operation asks this person for, who may perform the operation or only propose it. */
function useAsked(operation: Operation, given: Input) {
  const { door, session } = useApp();
  const hasRole = (roles: readonly string[]) =>
    roles.some((role) => session?.user.roles.includes(role) ?? false);
  const fieldsOf = (values: Input): readonly Field[] => {
    const isMerchants = door === 'portal' || Boolean(values['merchantId'] ?? given['merchantId']);
    return operation.fields
      .filter(
        ({ name, isAsked, roles }) => isAsked && !(name in given) && (roles.length === 0 || hasRole(roles)),
      )
      .map((field) => ({
        ...field,
        options: field.choices?.[isMerchants ? 'merchant' : 'operator'] ?? field.options,
      }));
  };
  /** Drops what was chosen and is not offered any more. */
  const withoutOthers = (values: Input): Input => {
    const fields = fieldsOf(values).filter(({ name, choices }) => choices && Array.isArray(values[name]));
    const kept = fields.map(({ name, options }) => [
      name,
      (values[name] as string[]).filter((each) => options.includes(each)),
    ]);
    return { ...values, ...Object.fromEntries(kept) };
  };
  return { fieldsOf, withoutOthers, onlyProposes: !hasRole(operation.roles) };
}

/** The dialog of an operation: its fields, its effect and a reason, then its result. */
export function ActionForm({ act, operation, hold, close }: Props) {
  const { name, given = {}, initial = {}, isDanger, onDone } = act;
  // Of what is there now, only what the operation changes.
  const isInput = ([field]: [string, unknown]) => operation.fields.some((each) => each.name === field);
  const current = Object.fromEntries(Object.entries(act.current ?? {}).filter(isInput));
  const { language, texts: all } = useLanguage();
  const { action: texts, sections } = all;
  const words = useWords();
  const client = useQueryClient();
  const announce = useDone();
  const cost = useCost();
  const { shapeOf } = useApp();
  const [base, setBase] = useState<Input>(current);
  const [values, setValues] = useState<Input>({ ...current, ...initial });
  const [meanwhile, setMeanwhile] = useState<Change>();
  const [answer, setAnswer] = useState<Answer>();
  const [whose, setWhose] = useState<string>();
  // The same input has the same key, so if it is sent twice, the change happens once.
  const sent = useRef({ key: '', input: '' });
  const label = act.label ?? words.action(name);
  const { fieldsOf, withoutOthers, onlyProposes } = useAsked(operation, given);
  const fields = fieldsOf(values);
  const verb = onlyProposes ? texts.propose : act.current ? texts.save : label;

  const finish = (done: Answer) => {
    close();
    onDone?.(done);
  };
  /** @param confirmed the present effect of a proposal that the person has seen, if it has changed */
  const attempt = async (confirmed: unknown) => {
    const changed = Object.entries(values).filter(([field, value]) => !isEqual(value, base[field]));
    const input = {
      ...given,
      ...Object.fromEntries(changed),
      ...(confirmed !== undefined && { effect: confirmed }),
    };
    const other = act.source && (await changedMeanwhile(name, act.source, base));
    if (other) {
      setMeanwhile(other);
      const now = other.after as Input;
      // A field that this user did not change takes the other person's value.
      const untouched = Object.entries(now).filter(([field]) => isEqual(values[field], base[field]));
      setValues({ ...values, ...Object.fromEntries(untouched) });
      return setBase({ ...base, ...now });
    }
    const text = JSON.stringify(input);
    if (sent.current.input !== text) sent.current = { key: crypto.randomUUID(), input: text };
    const done = await perform(operation, input, sent.current.key);
    await client.invalidateQueries();
    // An approval returns the answer of the operation, so the approver gets its secrets.
    const result = (done['output'] ?? done) as Answer;
    const approval = done['approval'] as Answer | undefined;
    const isProposed = approval !== undefined && approval['alone'] !== true;
    const hasSecret = Object.entries(result).some(([field, value]) => shapeOf(field).isSecret && value);
    if (isProposed || hasSecret) {
      hold(hasSecret ? 'secret' : undefined);
      setWhose((done['maker'] as { readonly name?: string } | undefined)?.name);
      return setAnswer(result);
    }
    const file = done['download'] as Download | undefined;
    if (file) save(file.name, file.content);
    const { state } = result;
    const isFirst = name === 'approval.approve' && state === 'PENDING';
    // A job goes on after the answer.
    const isBegun = state === 'WAITING' || state === 'RUNNING';
    const outcome = approval
      ? texts.doneAlone
      : isFirst
        ? texts.needsSecond
        : isBegun
          ? texts.begun
          : isNothing(result)
            ? NOTHING[language]
            : texts.done;
    announce(name, input, `${label}: ${outcome}`);
    finish(done);
  };
  const { mutate, error, isPending } = useMutation({
    mutationFn: attempt,
    // Somebody else was faster: the page behind says what there is now.
    onError: (refused) => {
      if (refused instanceof ApiProblem && /^(conflict|not-found)$/.test(refused.code))
        void client.invalidateQueries();
    },
  });
  const proposal = answer?.['approval'] as Answer | undefined;
  if (proposal && proposal['alone'] !== true)
    return <Proposed approval={proposal} operation={name} close={close} />;
  if (answer) return <Secrets secrets={answer} whose={whose} close={() => finish(answer)} />;
  const needsStepUp = error instanceof ApiProblem && error.code === 'step-up-required';
  // When a session has ended, a dialog asks for the sign-in.
  const isSignedOut = error instanceof ApiProblem && error.status === 401;
  const problems = error instanceof ApiProblem ? error.fields : [];
  const isWrong = (field: Field) => problems.some((each) => each.field === field.name);
  const isChanged = error instanceof ApiProblem && error.code === 'effect-changed';
  const ordered = cost({ ...given, ...values });
  const does = textOf(name, language);
  const effect = isChanged ? (
    <Stated operation={act.proposed ?? name} of={error.statement as Statement} />
  ) : typeof act.effect === 'function' ? (
    act.effect(values)
  ) : (
    act.effect
  );
  return (
    <Stack gap="md">
      <form ref={focusesFirst} onSubmit={submits(() => mutate(isChanged ? error.effect : undefined))}>
        <Stack gap="md">
          {does && <Text size="sm">{does}</Text>}
          {(effect || ordered) && (
            <Alert color={isDanger ? 'red' : 'accent'} variant="light" title={texts.effect} role="note">
              {effect}
              {ordered && <div>{ordered}</div>}
            </Alert>
          )}
          {sectionsOf(fields).map(({ title, fields: own }) => (
            <Section
              key={title ?? ''}
              title={title && sections[title]}
              isFolded={own.every((field) => field.isFolded && !isGiven(base[field.name]))}
              isWrong={own.some(isWrong)}
              names={own.map((field) => words.label(field.name))}
            >
              {own.map((field) => (
                <FieldInput
                  key={field.name}
                  operation={name}
                  field={field}
                  value={values[field.name]}
                  problem={problems.find((each) => each.field === field.name)}
                  onChange={(value) => {
                    hold('input');
                    setValues(withoutOthers({ ...values, [field.name]: value }));
                  }}
                />
              ))}
            </Section>
          ))}
          {meanwhile && (
            <Alert ref={intoView} color="orange" variant="light" title={texts.meanwhile}>
              <Changes of={[meanwhile]} />
              {texts.meanwhileHint}
            </Alert>
          )}
          {error && !needsStepUp && !isSignedOut && <Problem error={error} />}
          {isChanged && <Changes of={(error.effect ?? []) as Change[]} />}
          {!needsStepUp && (
            <Group justify="flex-end" gap={8} className="form-end">
              <Button variant="default" size="sm" onClick={close}>
                {texts.cancel}
              </Button>
              <Button type="submit" size="sm" color={isDanger ? 'red.8' : undefined} loading={isPending}>
                {verb}
              </Button>
            </Group>
          )}
        </Stack>
      </form>
      {needsStepUp && <StepUp onDone={() => mutate(undefined)} />}
    </Stack>
  );
}

const isGiven = (value: unknown) => value !== undefined && value !== null;

type SectionProps = {
  readonly title: string | undefined;
  /** Whether it is opened on demand. */
  readonly isFolded: boolean;
  readonly isWrong: boolean;
  /** The fields in it. */
  readonly names: readonly string[];
  readonly children: ReactNode;
};

function Section({ title, isFolded, isWrong, names, children }: SectionProps) {
  if (title === undefined) return children;
  if (!isFolded)
    return (
      <fieldset className="form-section">
        <legend>{title}</legend>
        {children}
      </fieldset>
    );
  return (
    <details open={isWrong} aria-label={title}>
      <summary>
        <b>{title}</b> <small className="quiet">{names.join(', ')}</small>
      </summary>
      <div className="form-section">{children}</div>
    </details>
  );
}

/** The changes that somebody else has made since the form was opened. */
async function changedMeanwhile(action: string, source: string, base: Input): Promise<Change | undefined> {
  const now = await get<Input>(source);
  const names = Object.keys(base).filter((field) => !isEqual(now[field], base[field]));
  if (names.length === 0) return undefined;
  const pick = (from: Input) => Object.fromEntries(names.map((field) => [field, from[field] ?? null]));
  return { action, subject: '', before: pick(base), after: pick(now) };
}

function Proposed({ approval, operation, close }: { approval: Answer; operation: string; close(): void }) {
  const texts = useTexts();
  return (
    <Stack>
      <Alert color="accent" variant="light" title={texts.action.proposed}>
        {texts.action.needsApproval}
      </Alert>
      <Stated operation={operation} of={approval['statement'] as Statement} />
      <Group justify="flex-end" gap={8}>
        <Button
          variant="default"
          size="sm"
          component={Link}
          to="/approvals"
          search={{ tab: 'mine' } as never}
        >
          {texts.nav.approvals}
        </Button>
        <Button size="sm" autoFocus onClick={close}>
          {texts.close}
        </Button>
      </Group>
    </Stack>
  );
}
