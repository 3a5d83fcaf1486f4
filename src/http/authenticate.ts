import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Service } from '../context.ts';
import { admit, type Caller, identify } from '../merchants/authenticate.ts';
import type { Allowance } from '../merchants/limits.ts';

/**
 * Finds out who asks, and whether that one may ask at all, before anything of the body is looked at.
 * @returns undefined where that is known at once, as it is for every key in use
 * @param carriesPin whether the endpoint takes a PIN, which a key that keeps guessing may not send
 * @throws Refusal `01`, `97`, `04`, in this order
 */
export function authenticateRequest(
  service: Service,
  request: FastifyRequest,
  reply: FastifyReply,
  carriesPin: boolean,
): undefined | Promise<void> {
  const admitCaller = (caller: Caller) => {
    // From here on the access log says whose request it is, also when it is not admitted.
    request.trace.context = caller.context;
    if (caller.allowance) tellLimit(reply, caller.allowance);
    admit(caller, carriesPin);
  };
  const caller = identify(service, request.headers.authorization, request);
  if (caller instanceof Promise) return caller.then(admitCaller);
  admitCaller(caller);
  return undefined;
}

/** The fields of draft-ietf-httpapi-ratelimit-headers-11: the quota and its window, what is left, and until it is whole again. */
function tellLimit(reply: FastifyReply, { limit, remaining, resetSeconds }: Allowance): void {
  const windowSeconds = Math.ceil(limit.burst / limit.perSecond);
  reply.header('ratelimit-policy', `"key";q=${limit.burst};w=${windowSeconds}`);
  reply.header('ratelimit', `"key";r=${remaining};t=${resetSeconds}`);
}
