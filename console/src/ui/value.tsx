import { CopyButton, UnstyledButton } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { useTexts } from '../i18n/index.tsx';
import { useApp } from './app.tsx';
import { endedDay, isDay, isMonth, isTime, useFormat } from './format.ts';
import { useMerchants } from './merchants.ts';
import { useWords } from './words.ts';

const TONES: Readonly<Record<string, string>> = {
  ACTIVE: 'ok',
  COMPLETED: 'ok',
  PAID: 'ok',
  closed: 'ok',
  active: 'ok',
  complete: 'ok',
  delivered: 'ok',
  changed: 'ok',
  APPROVED: 'ok',
  'in use': 'ok',
  ANSWERED: 'ok',
  PROCESSING: 'busy',
  RUNNING: 'busy',
  QUEUED: 'busy',
  WAITING: 'busy',
  PENDING: 'busy',
  pending: 'busy',
  open: 'busy',
  OPEN: 'busy',
  begun: 'busy',
  invited: 'busy',
  EXPIRED: 'warn',
  closing: 'warn',
  provisional: 'warn',
  RETURNED: 'warn',
  'being replaced': 'warn',
  BLOCKED: 'bad',
  FAILED: 'bad',
  failed: 'bad',
  REJECTED: 'bad',
  aborted: 'bad',
  declined: 'bad',
  disabled: 'bad',
  suspended: 'bad',
  failing: 'bad',
  'on sale': 'ok',
  ok: 'ok',
  matched: 'ok',
  'partly matched': 'warn',
  UNEXPLAINED: 'bad',
  GAP: 'bad',
  INCOMPLETE: 'bad',
  'GAP INCOMPLETE': 'bad',
  differs: 'bad',
};

/** Shows a state by its name and a color, never only by the color. */
export function State({ name }: { name: string }) {
  const { kind } = useWords();
  return (
    <span className="state" data-tone={TONES[name] ?? 'none'}>
      {kind(name, 'state')}
    </span>
  );
}

/** On a narrow screen, the time of day may be below its date. */
export function Time({ at }: { at: string }) {
  const format = useFormat();
  return (
    <time dateTime={at} title={format.exact(at)}>
      {format.time(at).replace(/ (?=.* )/g, '\u00a0')}
    </time>
  );
}

/** A time at the end of a day of the books is shown as that day. */
function Moment({ at }: { at: string }) {
  const format = useFormat();
  const day = endedDay(at, useApp().session?.zone ?? 'UTC');
  if (day === undefined) return <Time at={at} />;
  return (
    <time dateTime={at} title={format.exact(at)}>
      {format.day(day)}
    </time>
  );
}

/** An id that can be copied with a click. */
export function Copyable({ text, shown = text }: { text: string; shown?: string }) {
  const texts = useTexts().action;
  return (
    <CopyButton value={text}>
      {({ copied, copy }) => (
        <UnstyledButton
          className="mono"
          title={`${copied ? texts.copied : texts.copy}: ${text}`}
          onClick={(event) => {
            event.stopPropagation();
            copy();
          }}
        >
          {copied ? texts.copied : shown}
        </UnstyledButton>
      )}
    </CopyButton>
  );
}

function Merchant({ id }: { id: string }) {
  const { nameOf } = useMerchants();
  const { offers } = useApp();
  const name = nameOf(id) ?? `№ ${id}`;
  if (!offers('merchant.list')) return name;
  return (
    <Link to={`/merchants/${id}`} className="quiet-link" onClick={(event) => event.stopPropagation()}>
      <bdi className="long">{name}</bdi>
    </Link>
  );
}

const MONEY =
  /^(amount|balance|value|reserved|minValue|maxValue|carried|closing|opening|outstanding|payable|net|below|warnBelow|usePerDay|usableAmount|inScrip|matched|own|base|fee|feeVat)$/;
const WORDS =
  /^(kind|activation|scope|expiryPolicy|roles|factors|approvalMode|permissions|scopes|period|operation|outcome|refundStatus)$/;
const IDS = /^(transactionId|eventId|requestId|hash|closingHash|contentHash|originalTransactionId)$/;
const MONO =
  /^(id|serialNumber|voucherCode|keyId|batch|code|replacedBy|rotatedTo|bankReference|subject|address|networks)$/;

const ADDRESS = /^[^\s@]+@[^\s@]+$/;

/** An email address breaks before its domain. */
function Address({ of }: { of: string }) {
  const at = of.lastIndexOf('@');
  return (
    <bdi className="long">
      {of.slice(0, at)}
      <wbr />
      {of.slice(at)}
    </bdi>
  );
}

const isAmount = (value: object): value is { amount: string } => 'amount' in value;

type ValueProps = { name: string; value: unknown; currency?: string | undefined };

/** A value of the API, formatted for people. */
export function Value({ name, value, currency }: ValueProps): ReactNode {
  const format = useFormat();
  const { word, kind } = useWords();
  const { yes, no, all } = useTexts().list;
  const isNothing = value === null || (Array.isArray(value) && value.length === 0);
  if (isNothing && /^(events|scopes)$/.test(name)) return all;
  if (isNothing || value === undefined || value === '') return <span className="quiet">–</span>;
  if (Array.isArray(value)) {
    return value.map((each) => (WORDS.test(name) ? word(String(each), name) : String(each))).join(', ');
  }
  if (typeof value === 'boolean') return value ? yes : <span className="quiet">{no}</span>;
  if (/^(state|status)$/.test(name) && typeof value === 'string') return <State name={value} />;
  if (name === 'merchantId' || name === 'payerId') return <Merchant id={String(value)} />;
  if (isTime(value)) return <Moment at={value} />;
  if (isDay(value)) return format.day(value);
  if (/^(issueMonth|month)$/.test(name) && isMonth(value)) return format.month(value);
  if (typeof value === 'number')
    return currency && MONEY.test(name) ? format.money(value, currency) : format.number(value);
  if (typeof value === 'object')
    return isAmount(value) ? (
      currency ? (
        format.money(Number(value.amount), currency)
      ) : (
        format.exactly(value.amount)
      )
    ) : (
      <Copyable text={JSON.stringify(value)} />
    );
  const text = String(value);
  if (ADDRESS.test(text)) return <Address of={text} />;
  if (name === 'replacedBy')
    return (
      <Link to={`/vouchers/${text}`} className="quiet-link mono">
        {text}
      </Link>
    );
  if (IDS.test(name))
    return <Copyable text={text} shown={text.length > 12 ? `${text.slice(0, 12)}…` : text} />;
  if (WORDS.test(name)) return kind(text, name);
  if (name === 'url') return <span className="mono long">{text}</span>;
  return MONO.test(name) ? <span className="mono">{text}</span> : <bdi className="long">{text}</bdi>;
}

type Thing = Readonly<Record<string, unknown>>;

/** The named fields of one thing, in this order. Those in `also` are left out if they are empty. */
export function Fields({
  of,
  show = Object.keys(of),
  also = [],
}: {
  of: Thing;
  show?: readonly string[];
  also?: readonly string[];
}) {
  const { label } = useWords();
  const currency = typeof of['currency'] === 'string' ? of['currency'] : undefined;
  const isSet = (name: string) => ![null, undefined, '', false].includes(of[name] as never);
  return (
    <dl className="fields">
      {[...show, ...also.filter(isSet)].map((name) => (
        <div key={name} style={{ display: 'contents' }}>
          <dt>{label(name)}</dt>
          <dd>
            <Value name={name} value={of[name]} currency={currency} />
          </dd>
        </div>
      ))}
    </dl>
  );
}
