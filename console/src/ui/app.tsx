import { useQuery, useQueryClient } from '@tanstack/react-query';
import { createContext, type ReactNode, use, useEffect, useRef } from 'react';
import type { PeopleAnswer } from '../answers.ts';
import { type ApiProblem, type Door, get, isThere } from '../api.ts';
import type { Operation, Shape } from '../described.ts';
import { useDescribed } from '../operations.ts';

export type Session = PeopleAnswer<'GET /session'>;

type App = {
  readonly door: Door;
  /** The session of the person who is signed in, or was until it ended. */
  readonly session: Session | undefined;
  readonly isSignedOut: boolean;
  /** The service does not answer. */
  readonly isAway: boolean;
  readonly operations: ReadonlyMap<string, Operation> | undefined;
  /** How a field of this name is shown. */
  shapeOf(name: string): Shape;
  /** Whether the service offers an operation to this person. The service checks again at each request. */
  offers(name: string): boolean;
};

const Context = createContext<App | undefined>(undefined);

const UNKNOWN: Shape = {
  isKnown: false,
  isMoney: false,
  isList: false,
  isSecret: false,
  format: '',
  words: [],
};

/** The query that asks whether the service is there. It rests while the tab is hidden. */
export const THERE = ['there'];
const ASK_MS = 15_000;
const ASK_AGAIN_MS = 3_000;

/** Whether the service is away. When it is back, the page reads again what it shows. */
function useAway(): boolean {
  const client = useQueryClient();
  const { data: isAway } = useQuery({
    queryKey: THERE,
    queryFn: async () => !(await isThere()),
    // The page itself has just come from the service.
    initialData: false,
    // A request that fails asks at once.
    refetchInterval: ({ state }) => (state.data ? ASK_AGAIN_MS : ASK_MS),
  });
  useEffect(() => (isAway ? () => void client.invalidateQueries() : undefined), [isAway, client]);
  return isAway;
}

/** Another person has signed in, in another tab: nothing of the first one stays in this one. */
function useSamePerson(id: string | undefined): void {
  const known = useRef<string>(undefined);
  useEffect(() => {
    const isOther = known.current !== undefined && id !== undefined && known.current !== id;
    if (isOther && !/\/(sign-in|enroll)$/.test(location.pathname)) location.reload();
    known.current = id ?? known.current;
  }, [id]);
}

export function AppProvider({ door, children }: { readonly door: Door; readonly children: ReactNode }) {
  const { data: session, error } = useQuery<Session, ApiProblem>({
    queryKey: ['session'],
    queryFn: () => get<Session>('/session'),
    retry: false,
    refetchInterval: 60_000,
    refetchOnWindowFocus: 'always',
  });
  const isAway = useAway();
  useSamePerson(session?.user.id);
  const { operations, shapes } = useDescribed(door, session !== undefined) ?? {};
  const shapeOf = (name: string) => shapes?.get(name) ?? UNKNOWN;
  const offers = (name: string) => {
    const { roles = [], proposers = [] } = operations?.get(name) ?? {};
    return [...roles, ...proposers].some((role) => session?.user.roles.includes(role) ?? false);
  };
  const isSignedOut = error?.status === 401;
  return (
    <Context value={{ door, session, isSignedOut, isAway, operations, shapeOf, offers }}>{children}</Context>
  );
}

export function useApp(): App {
  const app = use(Context);
  if (!app) throw new Error('useApp outside of AppProvider');
  return app;
}
