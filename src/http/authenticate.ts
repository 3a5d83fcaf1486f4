import type { FastifyRequest } from 'fastify';
import type { Context, Service } from '../context.ts';
import { admit, authenticate } from '../merchants/authenticate.ts';

/**
 * Finds out who asks, and whether that one may ask at all, before anything of the body is looked at.
 * @param carriesPin whether the endpoint takes a PIN, which a key that keeps guessing may not send
 * @throws Refusal `01`, `97`, `04`, in this order
 */
export async function authenticateRequest(
  service: Service,
  request: FastifyRequest,
  carriesPin: boolean,
): Promise<Context> {
  const caller = await authenticate(service, request.headers.authorization);
  // From here on the access log says whose request it is, also when it is not admitted.
  request.trace.context = caller.context;
  admit(caller, carriesPin);
  return caller.context;
}
