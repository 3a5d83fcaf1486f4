import type { Configuration } from 'openid-client';
import type { Service } from '../context.ts';
import { sql } from '../db/sql.ts';
import { Problem } from '../problem.ts';
import {
  type Begun,
  begin,
  CLOCKS_DIFFER_MS,
  derived,
  type OidcAccount,
  readBegun,
  SIGN_IN_EXPIRED,
  SIGN_IN_MS,
  useOnce,
} from './begun.ts';
import { renewStepped, SESSION_MS, type Session, STEP_UP_MS, type Visitor } from './sessions.ts';
import { beginSecondFactor, notInvited, signIn } from './sign-in.ts';
import { type Account, isOpen, ofAddress, readAccounts } from './users.ts';

/**
 * Single sign-on with an identity provider (OpenID Connect, authorization code with PKCE). The provider
 * replaces the password for the operator's users, who have to be invited first. If the provider does not
 * confirm a second factor, the service asks for its own.
 */

export type OidcSettings = {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string;
};

const SCOPE = 'openid email';
/** The value of the claim `amr` for a sign-in with more than one factor (RFC 8176). */
const MULTI_FACTOR = 'mfa';
const TIMEOUT_S = 10;

/**
 * The oldest sign-in at the provider that is accepted: as old as a session can become here, so that a session
 * at the provider cannot be used for longer than one of ours. The provider then has to say when it was.
 */
const MAX_AGE_S = SESSION_MS / 1_000;

/** Why a sign-in at the provider fails, and what the page says. */
const FAILURES = {
  expired: SIGN_IN_EXPIRED,
  'not-confirmed': 'the identity provider did not confirm the sign-in: begin again',
  'no-factor':
    'the identity provider did not ask for a second factor: accept the invitation by its link, or sign in at ' +
    'the provider with one',
  'another-account': 'another account signed in at the identity provider',
} as const;

const failed = (reason: keyof typeof FAILURES) =>
  new Problem('unauthorized', FAILURES[reason], undefined, { reason });

/** The result of a visit to the provider. */
type Returned =
  | { readonly session: string; readonly isStepUp: false; readonly userId: number }
  | { readonly session: string; readonly isStepUp: true }
  /** The token of a sign-in that waits for the second factor. */
  | { readonly begun: string };

/** An identity provider. Its configuration is fetched, and its library loaded, at the first sign-in. */
export class OidcProvider {
  readonly #settings: OidcSettings;
  readonly #callbackUrl: string;
  #configuration: Promise<Configuration> | undefined;

  /** @param callbackUrl the URL to which the provider sends the browser back */
  constructor(settings: OidcSettings, callbackUrl: string) {
    this.#settings = settings;
    this.#callbackUrl = callbackUrl;
  }

  /**
   * Returns the provider's configuration.
   * @throws Problem `conflict` if the provider cannot be reached; the next call tries again
   */
  async #configured(): Promise<Configuration> {
    const { allowInsecureRequests, discovery, enableNonRepudiationChecks } = await import('openid-client');
    const { issuer, clientId, clientSecret } = this.#settings;
    const server = new URL(issuer);
    const isHere = /^(localhost|127\.0\.0\.1|\[::1\])$/.test(server.hostname);
    // The standard permits to trust the connection in place of the signature. The signature proves more.
    const execute = [enableNonRepudiationChecks, ...(isHere ? [allowInsecureRequests] : [])];
    this.#configuration ??= discovery(server, clientId, clientSecret, undefined, {
      timeout: TIMEOUT_S,
      execute,
    });
    try {
      return await this.#configuration;
    } catch {
      this.#configuration = undefined;
      throw new Problem(
        'conflict',
        'the identity provider cannot be reached: try again, or use the password',
        undefined,
        { reason: 'unreachable' },
      );
    }
  }

  /**
   * Begins to sign in, or to step up. Nothing is stored.
   * @param session the session to step up; undefined for a new one
   * @returns the URL at the provider, and the token that identifies the browser when it comes back
   */
  async begin(service: Service, session?: Session): Promise<{ url: URL; token: string }> {
    const { buildAuthorizationUrl, calculatePKCECodeChallenge } = await import('openid-client');
    const configuration = await this.#configured();
    const token = begin(service.clock(), session?.id);
    const { verifier, nonce, state } = checksOf(service, token);
    const url = buildAuthorizationUrl(configuration, {
      redirect_uri: this.#callbackUrl,
      scope: SCOPE,
      code_challenge: await calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
      nonce,
      state,
      ...(session ? { max_age: '0', prompt: 'login' } : { max_age: String(MAX_AGE_S) }),
    });
    return { url, token };
  }

  /**
   * Signs in a user who comes back from the provider, or steps its session up.
   * @param token of the browser, as long as it keeps it
   * @param query the query of the URL that the browser was sent back to
   * @throws Problem `unauthorized`
   */
  async finish(visitor: Visitor, token: string | undefined, query: string): Promise<Returned> {
    const { service } = visitor;
    const begun = token && readBegun(token, service.clock());
    if (!begun) throw failed('expired');
    const claims = await this.#claims(service, token, begun, query);
    if (!(await useOnce(service, token))) throw failed('expired');
    return begun.of === 0n
      ? finishSignIn(visitor, claims)
      : { session: await finishStepUp(visitor, claims, begun), isStepUp: true };
  }

  async #claims(service: Service, token: string, begun: Begun, query: string): Promise<Claims> {
    const { authorizationCodeGrant, fetchUserInfo } = await import('openid-client');
    const configuration = await this.#configured();
    const url = new URL(this.#callbackUrl);
    url.search = query;
    const { verifier, nonce, state } = checksOf(service, token);
    try {
      const tokens = await authorizationCodeGrant(configuration, url, {
        pkceCodeVerifier: verifier,
        expectedNonce: nonce,
        expectedState: state,
        idTokenExpected: true,
        maxAge: begun.of === 0n ? MAX_AGE_S : SIGN_IN_MS / 1_000,
      });
      const idToken = tokens.claims();
      if (idToken?.auth_time === undefined) throw new Error('there is no time of the sign-in');
      const { iss, sub, amr, auth_time } = idToken;
      const profile =
        idToken['email'] === undefined
          ? await fetchUserInfo(configuration, tokens.access_token, sub)
          : idToken;
      const authenticatedAt = new Date(auth_time * 1_000);
      if (authenticatedAt.getTime() > service.clock().getTime() + CLOCKS_DIFFER_MS)
        throw new Error('it is in the future');
      return {
        account: { issuer: iss, subject: sub },
        email: profile['email_verified'] === true ? String(profile['email']).toLowerCase() : undefined,
        hasFactor: Array.isArray(amr) && amr.includes(MULTI_FACTOR),
        authenticatedAt,
      };
    } catch {
      // The provider's error may contain a code or a token, so it is neither shown nor logged.
      throw failed('not-confirmed');
    }
  }
}

/** Returns what the answer of the provider has to contain. */
function checksOf(service: Service, token: string) {
  const of = (purpose: string) => derived(service, token, `oidc ${purpose}`).toString('base64url');
  return { verifier: of('verifier'), nonce: of('nonce'), state: of('state') };
}

type Claims = {
  readonly account: OidcAccount;
  /** Undefined unless the provider has verified the address. */
  readonly email: string | undefined;
  /** Whether the provider asked for a second factor. */
  readonly hasFactor: boolean;
  /** When the person signed in at the provider. */
  readonly authenticatedAt: Date;
};

/**
 * Signs in the user of an account at the provider: by issuer and subject, or by email address the first time.
 * The account is bound to the user when the second factor was given: for an invitation at the provider, and
 * for an account that is in use its own one.
 */
async function finishSignIn(visitor: Visitor, claims: Claims): Promise<Returned> {
  const { service } = visitor;
  const { account, email, hasFactor, authenticatedAt } = claims;
  const { db, clock } = service;
  const isFresh = clock().getTime() - authenticatedAt.getTime() < STEP_UP_MS;
  const proof = { how: 'oidc', steppedUpAt: isFresh ? authenticatedAt : null };
  const [known] = await readAccounts(db, boundTo(account));
  if (known) {
    if (!isOpen(known) || known.merchantId !== null) throw notInvited();
    if (!hasFactor) return { begun: await beginOwnFactor(service, known) };
    return { session: await signIn(visitor, known, proof), isStepUp: false, userId: known.id };
  }
  const [user] = email === undefined ? [] : await readAccounts(db, ofAddress(email, null));
  if (!user || !isOpen(user) || user.merchantId !== null || user.isBound) throw notInvited();
  if (user.state === 'active') return { begun: await beginOwnFactor(service, user, account) };
  if (!user.invitationExpiresAt || user.invitationExpiresAt <= clock()) throw notInvited();
  if (!hasFactor) throw failed('no-factor');
  const accepting = { ...proof, binding: account, accepts: true };
  return { session: await signIn(visitor, user, accepting), isStepUp: false, userId: user.id };
}

const boundTo = ({ issuer, subject }: OidcAccount) =>
  sql`u.oidc_issuer = ${issuer} and u.oidc_subject = ${subject}`;

async function beginOwnFactor(service: Service, user: Account, binding?: OidcAccount): Promise<string> {
  if (user.totpSecret === null) throw failed('no-factor');
  return beginSecondFactor(service, user.id, binding);
}

/** Steps a session up whose user signed in again, with a second factor, since the step-up began. */
async function finishStepUp(
  visitor: Visitor,
  { account, hasFactor, authenticatedAt }: Claims,
  { beganAt, of: sessionId }: Begun,
): Promise<string> {
  const [user] = await readAccounts(visitor.service.db, boundTo(account));
  if (!user) throw failed('another-account');
  if (!hasFactor) throw failed('no-factor');
  if (authenticatedAt.getTime() < beganAt.getTime() - CLOCKS_DIFFER_MS) throw failed('not-confirmed');
  const session = await renewStepped(visitor, { id: sessionId, user }, null, 'oidc');
  if (session === undefined) throw failed('another-account');
  return session;
}
