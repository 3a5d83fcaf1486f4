import {
  ActionIcon,
  Alert,
  Button,
  Code,
  CopyButton,
  Group,
  Menu,
  Modal,
  Stack,
  Text,
  TextInput,
} from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { useQueryClient } from '@tanstack/react-query';
import { type FormEvent, type ReactNode, useRef, useState } from 'react';
import { ApiProblem, type Door, send } from '../api.ts';
import { useTexts } from '../i18n/index.tsx';
import type { Operation } from '../operations.ts';
import { useApp } from './app.tsx';
import { FieldInput } from './field.tsx';
import { Problem } from './parts.tsx';

type Input = Readonly<Record<string, unknown>>;

type Props = {
  /** The name of the operation, such as `voucher.block`. Nothing is shown where the service does not offer it, or the roles do not permit it. */
  readonly name: string;
  readonly label: string;
  readonly given?: Input;
  readonly danger?: boolean;
  readonly primary?: boolean;
  readonly effect?: ReactNode;
  readonly onDone?: (answer: Readonly<Record<string, unknown>>) => void;
};

/** A button that performs an operation, after a dialog with its fields, its effect and a reason. */
export function Action(props: Props) {
  const { operations, permits } = useApp();
  const [isOpen, setOpen] = useState(false);
  const operation = operations?.get(props.name);
  if (!operation || !permits(operation)) return null;
  const variant = props.primary ? 'filled' : 'default';
  return (
    <>
      <Button variant={variant} color={props.danger ? 'red' : undefined} onClick={() => setOpen(true)}>
        {props.label}
      </Button>
      <Modal opened={isOpen} onClose={() => setOpen(false)} title={props.label} centered>
        {isOpen && <ActionForm {...props} operation={operation} close={() => setOpen(false)} />}
      </Modal>
    </>
  );
}

type MenuAction = Omit<Props, 'primary'>;

/** The operations on a row of a list, behind one button. */
export function ActionMenu({ label, actions }: { label: string; actions: readonly MenuAction[] }) {
  const { operations, permits } = useApp();
  const [opened, setOpened] = useState<MenuAction>();
  const offered = actions.filter(({ name }) => {
    const operation = operations?.get(name);
    return operation !== undefined && permits(operation);
  });
  const operation = opened && operations?.get(opened.name);
  const close = () => setOpened(undefined);
  if (offered.length === 0) return null;
  return (
    <>
      <Menu position="bottom-end">
        <Menu.Target>
          <ActionIcon variant="default" aria-label={label}>
            ⋯
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          {offered.map((each) => (
            <Menu.Item
              key={each.name}
              className={each.danger ? 'danger' : undefined}
              onClick={() => setOpened(each)}
            >
              {each.label}
            </Menu.Item>
          ))}
        </Menu.Dropdown>
      </Menu>
      <Modal opened={opened !== undefined} onClose={close} title={opened?.label} centered>
        {opened && operation && <ActionForm {...opened} operation={operation} close={close} />}
      </Modal>
    </>
  );
}

function ActionForm({
  operation,
  given = {},
  label,
  danger,
  effect,
  onDone,
  close,
}: Props & { operation: Operation; close(): void }) {
  const texts = useTexts().action;
  const client = useQueryClient();
  const { door } = useApp();
  const [values, setValues] = useState<Input>({});
  const [error, setError] = useState<unknown>();
  const [secrets, setSecrets] = useState<Input>();
  const [isBusy, setBusy] = useState(false);
  const finish = useRef<() => void>(() => {});
  // One key for this dialog: sent twice, the change happens once.
  const [idempotencyKey] = useState(() => crypto.randomUUID());
  const fields = operation.fields.filter(({ name }) => !(name in given));

  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    setError(undefined);
    try {
      const answer = await run(operation, { ...given, ...values }, idempotencyKey);
      await client.invalidateQueries();
      const shown = Object.entries(answer).filter(([name]) => /^(secret|token|link|key)$/.test(name));
      // What is shown once stays until somebody closes it: only then may the page change.
      if (shown.length > 0) {
        finish.current = () => onDone?.(answer);
        return setSecrets(Object.fromEntries(shown));
      }
      onDone?.(answer);
      notifications.show({ message: `${label}: ${texts.done}`, color: 'teal' });
      close();
    } catch (caught) {
      setError(caught);
    } finally {
      setBusy(false);
    }
  };

  const closeSecrets = () => {
    close();
    finish.current();
  };
  if (secrets) return <Secrets secrets={secrets} close={closeSecrets} />;
  const needsStepUp = error instanceof ApiProblem && error.code === 'step-up-required';
  return (
    <Stack gap="sm">
      <form onSubmit={submit}>
        <Stack gap="sm">
          <Text size="sm">{operation.summary}.</Text>
          {effect && (
            <Alert color={danger ? 'red' : 'blue'} variant="light" title={texts.effect}>
              {effect}
            </Alert>
          )}
          {fields.map((field) => (
            <FieldInput
              key={field.name}
              field={field}
              value={values[field.name]}
              problem={
                error instanceof ApiProblem
                  ? error.fields.find((each) => each.field === field.name)?.message
                  : undefined
              }
              onChange={(value) => setValues({ ...values, [field.name]: value })}
            />
          ))}
          {error !== undefined && !needsStepUp && <Problem error={error} />}
          {!needsStepUp && (
            <Group justify="flex-end">
              <Button variant="default" onClick={close}>
                {texts.cancel}
              </Button>
              <Button type="submit" color={danger ? 'red' : undefined} loading={isBusy}>
                {label}
              </Button>
            </Group>
          )}
        </Stack>
      </form>
      {needsStepUp && <StepUp door={door} onDone={() => setError(undefined)} />}
    </Stack>
  );
}

function StepUp({ onDone }: { door: Door; onDone(): void }) {
  const texts = useTexts().action;
  const [totp, setTotp] = useState('');
  const [error, setError] = useState<unknown>();
  const confirm = async (event: FormEvent) => {
    event.preventDefault();
    try {
      await send('POST', '/session/step-up', { body: { totp } });
      onDone();
    } catch (caught) {
      setError(caught);
    }
  };
  return (
    <form onSubmit={confirm}>
      <Alert color="blue" variant="light" title={texts.stepUp}>
        <Stack gap="xs">
          <Text size="sm">{texts.stepUpHint}</Text>
          <Group align="flex-end">
            <TextInput
              label={texts.code}
              value={totp}
              inputMode="numeric"
              autoComplete="one-time-code"
              data-autofocus
              onChange={(event) => setTotp(event.currentTarget.value)}
            />
            <Button type="submit">{texts.confirm}</Button>
          </Group>
          {error !== undefined && <Problem error={error} />}
        </Stack>
      </Alert>
    </form>
  );
}

function Secrets({ secrets, close }: { secrets: Input; close(): void }) {
  const texts = useTexts().action;
  return (
    <Stack gap="sm">
      <Alert color="orange" variant="light">
        {texts.secret}
      </Alert>
      {Object.entries(secrets).map(([name, value]) => (
        <Group key={name} wrap="nowrap">
          <Code block flex={1}>
            {String(value)}
          </Code>
          <CopyButton value={String(value)}>
            {({ copied, copy }) => (
              <Button variant="default" onClick={copy}>
                {copied ? texts.copied : texts.copy}
              </Button>
            )}
          </CopyButton>
        </Group>
      ))}
      <Group justify="flex-end">
        <Button onClick={close}>{texts.done}</Button>
      </Group>
    </Stack>
  );
}

/** Performs an operation. @throws ApiProblem */
function run(
  { method, path, fields }: Operation,
  input: Input,
  idempotencyKey: string,
): Promise<Record<string, unknown>> {
  const target = path.replace(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(String(input[name] ?? '')),
  );
  const inBody = fields.filter(({ in: place, name }) => place === 'body' && input[name] !== undefined);
  const body = Object.fromEntries(inBody.map(({ name }) => [name, input[name]]));
  return send(method === 'GET' ? 'POST' : method, target, { body, idempotencyKey });
}
