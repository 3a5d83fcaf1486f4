import { useId } from 'react';

type Props<Value extends string> = {
  /** Names the choice for screen readers. */
  readonly label: string;
  /** The text of each value, in their order. */
  readonly of: Readonly<Record<Value, string>>;
  readonly value: Value;
  readonly disabled?: boolean;
  onChange(value: Value): void;
};

/**
 * One of a few values, all of which are seen: radio buttons. Mantine's moves its mark between them, for which
 * it loads 5 kB.
 */
export function Choice<Value extends string>({ label, of, value, disabled, onChange }: Props<Value>) {
  const name = useId();
  return (
    <div role="radiogroup" aria-label={label} className="choice">
      {(Object.entries(of) as [Value, string][]).map(([each, text]) => (
        <label key={each}>
          <input
            type="radio"
            name={name}
            value={each}
            checked={each === value}
            disabled={disabled}
            onChange={() => onChange(each)}
          />
          {text}
        </label>
      ))}
    </div>
  );
}
