import { useQuery } from '@tanstack/react-query';
import { type Door, send } from './api.ts';
import { type Api, type Operation, readDocument } from './described.ts';

/**
 * The operations that the service offers. Pages, actions and forms are derived from them; the sign-in needs
 * none.
 */
export function useDescribed(door: Door, isSignedIn: boolean): Api | undefined {
  const { data } = useQuery({
    queryKey: ['operations', door],
    enabled: isSignedIn,
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: async () => readDocument(await (await fetch(`/docs/${door}/openapi.json`)).json(), door),
  });
  return data;
}

/**
 * Performs an operation. Empty lines of a list are left out.
 * @throws ApiProblem
 */
export function perform(
  { method, path, fields }: Operation,
  input: Readonly<Record<string, unknown>>,
  idempotencyKey: string,
): Promise<Record<string, unknown>> {
  const target = path.replace(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(String(input[name] ?? '')),
  );
  const clean = (value: unknown) => (Array.isArray(value) ? value.filter((each) => each !== '') : value);
  // A field that the service requires may be left empty if it may be null.
  const inBody = fields.filter(
    ({ in: place, name, required, nullable }) =>
      place === 'body' && (input[name] !== undefined || (required && nullable)),
  );
  const body = Object.fromEntries(inBody.map(({ name }) => [name, clean(input[name] ?? null)]));
  return send(method === 'GET' ? 'POST' : method, target, { body, idempotencyKey });
}
