import type { operations as OfOperator } from '../generated/operator.d.ts';
import type { operations as OfPeople } from '../generated/people.d.ts';
import type { operations as OfPortal } from '../generated/portal.d.ts';

type Made<Body> = { readonly content: { readonly 'application/json': Body } };
type Outcomes<Body> = { readonly 200: Made<Body> } | { readonly 201: Made<Body> };
type AnswerOf<Operation> = Operation extends { readonly responses: Outcomes<infer Body> } ? Body : never;
type ItemOf<List> = List extends { readonly items: readonly (infer Item)[] } ? Item : never;

/** The answer of an operation of the operator API. */
export type Answer<Name extends keyof OfOperator> = AnswerOf<OfOperator[Name]>;
/** An item of an operation of the operator API that lists. */
export type Listed<Name extends keyof OfOperator> = ItemOf<Answer<Name>>;
/** The answer of an operation of the portal. */
export type PortalAnswer<Name extends keyof OfPortal> = AnswerOf<OfPortal[Name]>;
/** The answer of a route by which people sign in, or change their own accounts. */
export type PeopleAnswer<Called extends keyof OfPeople> = AnswerOf<OfPeople[Called]>;
