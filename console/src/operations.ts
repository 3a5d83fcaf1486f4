import { useQuery } from '@tanstack/react-query';
import operator from '../generated/operator.json?url';
import portal from '../generated/portal.json?url';
import { ApiProblem, beginsOutside, type Door, send } from './api.ts';
import type { Api, Operation } from './described.ts';

/** What the build reads in the OpenAPI document of each API, a third of its bytes (../generate.ts). */
const FILES: Readonly<Record<Door, string>> = { operator, portal };

/**
 * The operations that the service offers. Pages, actions and forms are derived from them; the sign-in needs
 * none. A page asks for them together with the session, on which most of them depend.
 */
export function useDescribed(door: Door, isSignedIn: boolean): Api | undefined {
  const { data } = useQuery<Api>({
    queryKey: ['operations', door],
    enabled: isSignedIn || !beginsOutside,
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: async ({ client, queryKey }) => {
      const response = await fetch(FILES[door]);
      // The service has another build by now. A page that is open keeps what was typed.
      if (response.status === 404 && !client.getQueryData(queryKey)) location.reload();
      if (!response.ok) throw new ApiProblem(response.status, {});
      const { operations, shapes } = await response.json();
      return { operations: new Map(operations), shapes: new Map(shapes) };
    },
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
