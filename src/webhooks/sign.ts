import { Webhook } from 'standardwebhooks';

/**
 * The headers of a delivery (Standard Webhooks 1.0): its id, the time of this attempt, and a signature by each secret that
 * holds at the time, separated by spaces.
 */
export function signedHeaders(eventId: string, body: string, secrets: readonly string[], now: Date) {
  const id = `msg_${eventId.replaceAll('-', '')}`;
  return {
    'content-type': 'application/json',
    'user-agent': 'Scrip-Webhooks/1',
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(now.getTime() / 1_000)),
    'webhook-signature': secrets.map((secret) => new Webhook(secret).sign(id, now, body)).join(' '),
  };
}
