import {
  allowInsecureRequests,
  authorizationCodeGrant,
  buildAuthorizationUrl,
  type Configuration,
  calculatePKCECodeChallenge,
  discovery,
  fetchUserInfo,
  randomNonce,
  randomPKCECodeVerifier,
  randomState,
} from 'openid-client';
import { audit } from '../audit/audit.ts';
import type { Service } from '../context.ts';
import { hashSecret, newBearer } from '../credentials.ts';
import { Problem } from '../operator/problem.ts';
import {
  bindOidc,
  enrollUser,
  findOpenInvitation,
  findUserByEmail,
  findUserById,
  findUserByOidc,
  type UserRow,
} from './queries.ts';
import { insertSignIn, type SignInRow, takeSignIn } from './sessions.queries.ts';
import { actorOfUser, type Origin } from './sessions.ts';
import { beginSecondFactor, signIn } from './sign-in.ts';

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
const SIGN_IN_MS = 10 * 60_000;
const TIMEOUT_S = 10;

type Details = { readonly verifier: string; readonly nonce: string; readonly state: string };

/** An identity provider. Its configuration is fetched at the first sign-in. */
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
    const { issuer, clientId, clientSecret } = this.#settings;
    const server = new URL(issuer);
    const isHere = /^(localhost|127\.0\.0\.1|\[::1\])$/.test(server.hostname);
    const options = { timeout: TIMEOUT_S, ...(isHere && { execute: [allowInsecureRequests] }) };
    this.#configuration ??= discovery(server, clientId, clientSecret, undefined, options);
    try {
      return await this.#configuration;
    } catch {
      this.#configuration = undefined;
      throw new Problem(
        'conflict',
        'the identity provider cannot be reached: try again, or use the password',
      );
    }
  }

  /**
   * Begins to sign in.
   * @returns the URL at the provider, and the token that identifies the browser when it comes back
   */
  async begin({ db, clock }: Service): Promise<{ url: URL; token: string }> {
    const configuration = await this.#configured();
    const details: Details = {
      verifier: randomPKCECodeVerifier(),
      nonce: randomNonce(),
      state: randomState(),
    };
    const { token, tokenHash } = newBearer();
    const expiresAt = new Date(clock().getTime() + SIGN_IN_MS);
    const stored = {
      tokenHash,
      userId: null,
      stage: 'oidc',
      details: JSON.stringify(details),
      expiresAt,
    } as const;
    await db.query(insertSignIn(stored));
    const url = buildAuthorizationUrl(configuration, {
      redirect_uri: this.#callbackUrl,
      scope: SCOPE,
      code_challenge: await calculatePKCECodeChallenge(details.verifier),
      code_challenge_method: 'S256',
      nonce: details.nonce,
      state: details.state,
    });
    return { url, token };
  }

  /**
   * Signs in a user who comes back from the provider.
   * @param query the query of the URL that the browser was sent back to
   * @returns the token of a session, or of a sign-in that waits for the second factor
   * @throws Problem `unauthorized`
   */
  async finish(
    service: Service,
    token: string,
    query: string,
    origin: Origin,
  ): Promise<{ session: string } | { begun: string }> {
    const { db, clock } = service;
    const [begun] = await db.query<SignInRow>(takeSignIn(hashSecret(token), 'oidc', clock()));
    if (!begun) throw new Problem('unauthorized', 'the sign-in has expired: begin again');
    const claims = await this.#claims(JSON.parse(begun.details) as Details, query);
    const hasFactor = claims.amr.includes(MULTI_FACTOR);
    const user = await findPerson(service, claims, hasFactor, origin);
    if (hasFactor) return { session: await signIn(service, user, origin, { how: 'oidc', hasFactor }) };
    if (user.totp_secret === null)
      throw new Problem('unauthorized', 'the identity provider did not ask for a second factor');
    return { begun: await beginSecondFactor(service, user.id) };
  }

  async #claims({ verifier, nonce, state }: Details, query: string): Promise<Claims> {
    const configuration = await this.#configured();
    const url = new URL(this.#callbackUrl);
    url.search = query;
    try {
      const tokens = await authorizationCodeGrant(configuration, url, {
        pkceCodeVerifier: verifier,
        expectedNonce: nonce,
        expectedState: state,
        idTokenExpected: true,
      });
      const token = tokens.claims();
      if (!token) throw new Error('there is no ID token');
      const { iss, sub, amr } = token;
      const profile =
        token['email'] === undefined ? await fetchUserInfo(configuration, tokens.access_token, sub) : token;
      const email = profile['email_verified'] === true ? String(profile['email']).toLowerCase() : undefined;
      return { issuer: iss, subject: sub, email, amr: Array.isArray(amr) ? amr.map(String) : [] };
    } catch {
      // The provider's error may contain a code or a token, so it is neither shown nor logged.
      throw new Problem('unauthorized', 'the identity provider did not confirm the sign-in: begin again');
    }
  }
}

type Claims = {
  readonly issuer: string;
  readonly subject: string;
  /** Undefined unless the provider has verified the address. */
  readonly email: string | undefined;
  readonly amr: readonly string[];
};

const notInvited = () => new Problem('unauthorized', 'nobody was invited under this account');

/**
 * Finds the user of an account at the provider: by issuer and subject, or by email address the first time.
 * The first sign-in also accepts the invitation if the provider asked for a second factor.
 */
async function findPerson(
  service: Service,
  { issuer, subject, email }: Claims,
  hasFactor: boolean,
  origin: Origin,
): Promise<UserRow> {
  const { db, clock } = service;
  const [known] = await db.query<UserRow>(findUserByOidc(issuer, subject));
  if (known) {
    if (known.disabled_at || known.merchant_id !== null || !known.enrolled_at) throw notInvited();
    return known;
  }
  return db.transaction(async (tx) => {
    const [user] = email === undefined ? [] : await tx.query<UserRow>(findUserByEmail(email));
    if (!user || user.disabled_at || user.merchant_id !== null) throw notInvited();
    const [bound] = await tx.query(bindOidc(user.id, issuer, subject));
    if (!bound) throw notInvited();
    if (!user.enrolled_at) {
      const [invitation] = await tx.query(findOpenInvitation(user.id, clock()));
      if (!invitation || !hasFactor) throw notInvited();
      const enrolled = { name: user.name, passwordHash: null, hasTotp: false, now: clock() };
      await tx.query(enrollUser(user.id, enrolled));
    }
    const operator = { service, actor: actorOfUser(user, origin) };
    const subjectName = `user ${user.id}`;
    await audit(tx, operator, { action: 'user.bind-oidc', subject: subjectName, after: { issuer, subject } });
    const [now] = await tx.query<UserRow>(findUserById(user.id));
    return now as UserRow;
  });
}
