import { useState } from 'react';

/** The texts of a form by the names of its inputs. `inputOf` binds an input to one of them. */
export function useValues<Values extends Readonly<Record<string, string>>>(initial: Values) {
  const [values, setValues] = useState(initial);
  const inputOf = (name: keyof Values & string) => ({
    value: values[name],
    onChange: ({ currentTarget }: { readonly currentTarget: { readonly value: string } }) =>
      setValues({ ...values, [name]: currentTarget.value }),
  });
  return { values, setValues, inputOf };
}
