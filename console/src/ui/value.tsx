import { CopyButton, UnstyledButton } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import type { Shape } from '../described.ts';
import type { Figure as Declared } from '../figures.ts';
import { useTexts } from '../i18n/index.tsx';
import { useApp } from './app.tsx';
import { Figure } from './figure.tsx';
import { useFormat } from './format.ts';
import { endedDay, isDay, isMonth, isTime } from './format-of.ts';
import { useMerchants, useProductNames } from './names.ts';
import { useWords } from './words.ts';

/** The states of each color, in small letters. */
const TONES: Readonly<Record<string, string>> = {
  ok:
    'active, answered, approved, changed, closed, complete, completed, delivered, in use, matched, ok, ' +
    'on sale, paid',
  busy: 'begun, invited, open, pending, processing, running, waiting',
  warn: 'being replaced, closing, expired, partly matched, provisional, returned, warning',
  bad:
    'aborted, blocked, declined, differs, disabled, failed, failing, failure, gap, gap incomplete, incomplete, ' +
    'rejected, suspended, unexplained',
};

function toneOf(state: string): string {
  const isOf = ([, states]: [string, string]) => states.split(', ').includes(state.toLowerCase());
  return Object.entries(TONES).find(isOf)?.[0] ?? 'none';
}

/** Shows a state by its name and a color, never only by the color. */
export function State({ name }: { name: string }) {
  const { kind } = useWords();
  return (
    <span className="state" data-tone={toneOf(name)}>
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
          onClick={copy}
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
    <Link to={`/merchants/${id}`} className="quiet-link">
      <bdi className="long">{name}</bdi>
    </Link>
  );
}

/** A product by its name, with its code as the title. */
function Product({ code }: { code: string }) {
  const name = useProductNames()(code);
  const { offers } = useApp();
  const shown = (
    <bdi className="long" title={name && code}>
      {name ?? code}
    </bdi>
  );
  if (name === undefined || !offers('product.show')) return shown;
  return (
    <Link to={`/products/${encodeURIComponent(code)}`} className="quiet-link">
      {shown}
    </Link>
  );
}

/** An id of letters and digits, which is shown shortened; a code, an address or a number of something. */
const LONG_ID = /^([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32,})$/;
const CODE = /^(?=.*\d)[^\s@]+$/;
const CAPITALS = /^[A-Z]{3,}(_[A-Z]+)*$/;

/** Whether a text is a word of a closed list. */
export const isWordOf = ({ words }: Shape, text: string): boolean =>
  words.includes(text) || (words.length > 0 && CAPITALS.test(text));

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

type Thing = Readonly<Record<string, unknown>>;

type ValueProps = {
  name: string;
  value: unknown;
  currency?: string | undefined;
  /** What a number opens into, and the fields of its row and of what is around the row. */
  figure?: Declared | undefined;
  around?: readonly Thing[];
};

/** A value of the API, as its schema describes it. */
export function Value(props: ValueProps): ReactNode {
  const { name, value, currency, figure, around = [] } = props;
  const format = useFormat();
  const { kind } = useWords();
  const { shapeOf } = useApp();
  const { yes, no, all } = useTexts().list;
  const shape = shapeOf(name);
  const isWord = (text: string) => isWordOf(shape, text);
  if (value === null && shape.isList) return all;
  if (value === null || value === undefined || value === '' || (Array.isArray(value) && value.length === 0))
    return <span className="quiet">–</span>;
  if (Array.isArray(value))
    return value.map((each) => (isWord(String(each)) ? kind(String(each), name) : String(each))).join(', ');
  if (typeof value === 'boolean') return value ? yes : <span className="quiet">{no}</span>;
  if (typeof value === 'number' && shape.format === 'percent') return format.percent(String(value));
  if (typeof value === 'number')
    return (
      <Figure of={figure} value={value} around={around}>
        {currency && shape.isMoney ? (
          format.money(value, currency)
        ) : (
          <span className={value === 0 ? 'quiet' : undefined}>{format.number(value)}</span>
        )}
      </Figure>
    );
  if (typeof value === 'object')
    return isAmount(value) ? (
      <Figure of={figure} value={value} around={around}>
        {currency ? format.money(Number(value.amount), currency) : format.exactly(value.amount)}
      </Figure>
    ) : (
      <Copyable text={JSON.stringify(value)} />
    );
  const text = String(value);
  if (/^(state|status)$/.test(name)) return <State name={text} />;
  if (shape.format === 'merchant') return <Merchant id={text} />;
  if (shape.format === 'product') return <Product code={text} />;
  if (isTime(value)) return <Moment at={value} />;
  if (isDay(value)) return format.day(value);
  if (isMonth(value)) return format.month(value);
  if (isWord(text)) return kind(text, name);
  if (ADDRESS.test(text)) return <Address of={text} />;
  if (LONG_ID.test(text)) return <Copyable text={text} shown={`${text.slice(0, 12)}…`} />;
  if (shape.format === 'voucher' && name !== 'serialNumber')
    return (
      <Link to={`/vouchers/${text}`} className="quiet-link mono">
        {text}
      </Link>
    );
  if (text.startsWith('https://')) return <span className="mono long">{text}</span>;
  return CODE.test(text) ? <span className="mono">{text}</span> : <bdi className="long">{text}</bdi>;
}

/** Whether a column of these values does not need to be wide: no value is a text of several words. */
export const isTight = (values: readonly unknown[]) =>
  // What a page composes of other fields may be long.
  values.some((value) => value !== undefined) &&
  values.every((value) => typeof value !== 'object' || value === null) &&
  !values.some((value) => typeof value === 'string' && / /.test(value));

const isEmpty = (value: unknown) => value === null || value === undefined || value === '' || value === false;

const isTexts = (value: unknown) =>
  Array.isArray(value) && value.length > 0 && value.every((each) => typeof each === 'string');

/** The fields of one thing in the order of its schema, without those that are empty, lists or objects. */
export function Fields({
  of,
  answer = '',
  without = [],
  links = {},
}: {
  of: Thing;
  /** The operation that answers it, and declares its figures. */
  answer?: string;
  without?: readonly string[];
  /** The addresses of the things that fields name. */
  links?: Readonly<Record<string, string | undefined>>;
}) {
  const { label } = useWords();
  const { door, shapeOf, operations } = useApp();
  const figures = operations?.get(answer)?.figures;
  const currency = typeof of['currency'] === 'string' ? of['currency'] : undefined;
  const isShown = ([name, value]: [string, unknown]) =>
    (!isEmpty(value) || (value === null && shapeOf(name).isList)) &&
    (typeof value !== 'object' || value === null || isTexts(value)) &&
    !without.includes(name) &&
    (door === 'operator' || name !== 'merchantId');
  return (
    <dl className="fields">
      {Object.entries(of)
        .filter(isShown)
        .map(([name, value]) => (
          <div key={name} style={{ display: 'contents' }}>
            <dt>{label(name)}</dt>
            <dd>
              {links[name] ? (
                <Link to={links[name]} className="quiet-link">
                  <Value name={name} value={value} currency={currency} />
                </Link>
              ) : (
                <Value name={name} value={value} currency={currency} figure={figures?.[name]} around={[of]} />
              )}
            </dd>
          </div>
        ))}
    </dl>
  );
}
