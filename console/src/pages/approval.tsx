import { Stack, Text } from '@mantine/core';
import { useParams } from '@tanstack/react-router';
import type { Answer } from '../answers.ts';
import { useTexts } from '../i18n/index.tsx';
import { Actions } from '../ui/actions.tsx';
import { useApp } from '../ui/app.tsx';
import { Changes, Difference, fieldsOf } from '../ui/changes.tsx';
import { Head, Panel } from '../ui/parts.tsx';
import { Same } from '../ui/same.tsx';
import { Stated } from '../ui/statement.tsx';
import { useThing } from '../ui/thing.tsx';
import { Fields, State } from '../ui/value.tsx';
import { useWords } from '../ui/words.ts';
import { nameOf } from './approvals.tsx';

type Approval = Answer<'approval.show'>;

/** What the head of the page and its panels say. */
const IN_HEAD = ['id', 'operation', 'state', 'statement', 'effect', 'input', 'output', 'approvers'];

/** A proposal: the change in words, and the decision. */
export function Screen() {
  const texts = useTexts().approvals;
  const words = useWords();
  const { session, operations } = useApp();
  const { id = '' } = useParams({ strict: false }) as { id?: string };
  const { thing, instead } = useThing<Approval>(`/approvals/${id}`, {
    refetchMs: ({ state }) => (state === 'PENDING' ? 5_000 : false),
  });
  if (!thing) return instead;
  const maker = thing['maker'] as { id?: unknown; userId?: unknown } | null;
  const isMine = String(maker?.userId ?? maker?.id ?? '') === session?.user.id;
  // Alone, after a delay, or as long as nobody else could approve anything.
  const isAlone = thing['notBefore'] !== null || session?.alone === true;
  // The service requires a role that may approve the operation.
  const mayDecide = operations
    ?.get(thing.operation)
    ?.approvers.some((role) => session?.user.roles.includes(role));
  const title = words.title(thing.operation);
  // A decision has a comment, which is its reason.
  const given = { id, reason: undefined };
  const effect = <Stated operation={thing.operation} of={thing.statement} />;
  const decided = { effect, given };
  const { maker: _maker, checker: _checker, ...rest } = thing;
  // An effect names the thing whose number it is.
  const { id: _id, ...others } = thing.input;
  const input = thing.effect && thing.effect.length > 0 ? others : thing.input;
  const shown = {
    ...rest,
    maker: nameOf(thing['maker']),
    checker: thing['checker'] && nameOf(thing['checker']),
  };
  return (
    <>
      <Head
        back={{ to: '/approvals', label: texts.title }}
        name={title}
        title={
          <>
            {title} <State name={thing.state} />
          </>
        }
      >
        <Actions
          primary={!isMine || isAlone}
          acts={
            thing.state !== 'PENDING'
              ? []
              : [
                  mayDecide &&
                    (!isMine || isAlone) && {
                      name: 'approval.approve',
                      given: { ...given, effect: undefined },
                      effect,
                      proposed: thing.operation,
                    },
                  isMine
                    ? { name: 'approval.withdraw', ...decided }
                    : mayDecide && { name: 'approval.reject', ...decided, isDanger: true },
                ]
          }
        />
        <Same name="approval.show" given={{ id }} />
      </Head>
      <div className="two">
        <Stack>
          <Panel title={texts.what} padded>
            <Stated operation={thing.operation} of={thing.statement} />
            <Difference before={{}} after={thing.statement.values} />
          </Panel>
          <Panel title={texts.effect} padded>
            {thing.effect && thing.effect.length > 0 ? (
              <Changes of={thing.effect} />
            ) : (
              <Text size="sm" className="quiet">
                {texts.noEffect}
              </Text>
            )}
          </Panel>
          <Panel title={texts.input} padded>
            <Difference before={{}} after={input} currency={fieldsOf(thing.effect?.[0]?.after)['currency']} />
          </Panel>
        </Stack>
        <Panel title={texts.details} padded>
          <Fields of={shown} without={IN_HEAD} />
        </Panel>
      </div>
    </>
  );
}
