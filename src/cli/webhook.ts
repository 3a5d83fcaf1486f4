import type { Command } from 'commander';
import type { Operator } from '../context.ts';
import { ForbiddenAddress } from '../webhooks/address.ts';
import { listAttempts, listDeliveries, resend, sendTest } from '../webhooks/deliveries.ts';
import {
  addEndpoint,
  type Endpoint,
  enableEndpoint,
  findEndpoint,
  listEndpoints,
  removeEndpoint,
  rotateSecret,
  TooManyEndpoints,
} from '../webhooks/endpoints.ts';
import { EVENTS, type EventType } from '../webhooks/outbox.ts';
import { createSender } from '../webhooks/send.ts';
import { requireMerchant } from './merchant.ts';
import { withOperator, withService } from './open.ts';
import {
  fail,
  id,
  notFound,
  numberOf,
  printFields,
  printJson,
  printSecret,
  printTable,
  quoted,
  say,
  wrongUsage,
} from './output.ts';
import { parseCount, parseEventId, parseId, parseStart, repeat } from './parse.ts';

const LISTED_MAX = 10_000;
const LISTED = '50';
const STATES = ['PENDING', 'DELIVERED', 'FAILED'] as const;

type Json = { readonly json?: boolean };

export function registerWebhook(program: Command): void {
  const webhook = program
    .command('webhook')
    .description('webhook endpoints, to which merchants have events sent');
  webhook
    .command('add')
    .description('add an endpoint, whose secret is shown once')
    .requiredOption('--merchant <id>', 'the merchant')
    .requiredOption('--url <url>', 'an https URL with a public address')
    .option('--event <type>', `send only this event (repeatable; default: all): ${EVENTS.join(', ')}`, repeat)
    .option('--full', "put a completed batch's vouchers, with codes and PINs, into its event (https only)")
    .option('--json', 'print JSON')
    .action(add);
  webhook
    .command('list')
    .description('list the endpoints')
    .option('--merchant <id>', 'only those of this merchant')
    .option('--json', 'print JSON')
    .action(list);
  webhook.command('show <id>').description('show an endpoint').option('--json', 'print JSON').action(show);
  webhook
    .command('remove <id>')
    .description('remove an endpoint; its deliveries stay visible for 90 days')
    .option('--json', 'print JSON')
    .action(remove);
  webhook
    .command('enable <id>')
    .description('turn a disabled endpoint on again')
    .option('--json', 'print JSON')
    .action(enable);
  webhook
    .command('rotate <id>')
    .description('create a new secret for an endpoint; for 24 hours deliveries are signed with both')
    .option('--json', 'print JSON')
    .action(rotate);
  webhook
    .command('test <id>')
    .description('send an event webhook.test to an endpoint, once, and print the outcome')
    .option('--json', 'print JSON')
    .action(test);
  webhook
    .command('deliveries <id>')
    .description('list the deliveries to an endpoint, newest first')
    .option('--event <eventId>', 'every attempt to deliver this event')
    .option('--state <state>', `only deliveries that are ${STATES.join(', ')}`)
    .option('--limit <count>', `how many, up to ${LISTED_MAX} (default: ${LISTED})`)
    .option('--json', 'print JSON')
    .action(deliveries);
  webhook
    .command('resend <id>')
    .description('send again: one event, or all that failed since a time')
    .option('--event <eventId>', 'this event')
    .option('--failed-since <date>', 'all that failed and happened since this day (UTC), or date and time')
    .option('--json', 'print JSON')
    .action(sendAgain);
}

async function add(
  options: Json & { merchant: string; url: string; event?: readonly string[]; full?: boolean },
): Promise<void> {
  const merchantId = parseId(options.merchant);
  const events = options.event?.map(
    (name) =>
      EVENTS.find((each) => each === name) ??
      wrongUsage(`${quoted(name)} is not an event: --event takes ${EVENTS.join(', ')}`),
  );
  await withOperator(async (operator, { webhookAllowPrivate }) => {
    await requireMerchant(operator.service.db, merchantId);
    const wanted = {
      merchantId,
      url: options.url,
      events: events ? ([...new Set(events)] as EventType[]) : null,
      full: options.full ?? false,
    };
    const added = await addEndpoint(operator, wanted, webhookAllowPrivate).catch((error: Error) => {
      if (error instanceof ForbiddenAddress || error instanceof TooManyEndpoints)
        fail(`--url: ${error.message}`);
      throw error;
    });
    printSecret({ id: id(added.id), secret: added.secret }, options.json);
  });
}

async function list(options: Json & { merchant?: string }): Promise<void> {
  const merchantId = options.merchant === undefined ? null : parseId(options.merchant);
  await withService(async ({ db }) => {
    if (merchantId !== null) await requireMerchant(db, merchantId);
    const endpoints = await listEndpoints(db, merchantId);
    if (options.json) return printJson(endpoints.map(toJson));
    printTable(
      ['id', 'merchant', 'url', 'events', 'state', 'waiting', 'failed'],
      endpoints.map((each) => [
        String(each.id),
        String(each.merchantId),
        each.url,
        [...(each.events ?? ['all']), ...(each.full ? ['(full)'] : [])],
        stateOf(each),
        String(each.pending),
        String(each.failed),
      ]),
      ['url', 'state'],
    );
  });
}

function stateOf({ disabledAt, disabledReason, failingSince }: Endpoint): string {
  if (disabledAt) return `off: ${disabledReason}`;
  return failingSince ? `failing since ${failingSince.toISOString()}` : 'on';
}

function toJson(endpoint: Endpoint) {
  const { id: number, merchantId, ...rest } = endpoint;
  return { id: id(number), merchantId: id(merchantId), enabled: endpoint.disabledAt === null, ...rest };
}

async function requireEndpoint(
  { service }: Pick<Operator, 'service'>,
  endpointId: number,
): Promise<Endpoint> {
  return (await findEndpoint(service.db, endpointId)) ?? notFound(`endpoint ${endpointId}`);
}

/** Runs a change of an endpoint that must exist. */
async function withEndpoint(
  text: string,
  run: (operator: Operator, endpoint: Endpoint, allowPrivate: boolean) => Promise<void>,
): Promise<void> {
  const endpointId = parseId(text, 'endpoint');
  await withOperator(async (operator, { webhookAllowPrivate }) => {
    await run(operator, await requireEndpoint(operator, endpointId), webhookAllowPrivate);
  });
}

async function show(text: string, options: Json): Promise<void> {
  const endpointId = parseId(text, 'endpoint');
  await withService(async (service) => {
    const endpoint = await requireEndpoint({ service }, endpointId);
    if (options.json) return printJson(toJson(endpoint));
    printFields({ ...toJson(endpoint), events: endpoint.events?.join(', ') ?? 'all' });
  });
}

async function remove(text: string, options: Json): Promise<void> {
  await withEndpoint(text, async (operator, endpoint) => {
    await removeEndpoint(operator, endpoint.id);
    if (options.json) return printJson({ id: id(endpoint.id), removed: true });
    say('removed');
  });
}

async function enable(text: string, options: Json): Promise<void> {
  await withEndpoint(text, async (operator, endpoint) => {
    await enableEndpoint(operator, endpoint.id);
    if (options.json) return printJson(toJson(await requireEndpoint(operator, endpoint.id)));
    say('on');
  });
}

async function rotate(text: string, options: Json): Promise<void> {
  await withEndpoint(text, async (operator, endpoint) => {
    const { secret, previousUntil } =
      (await rotateSecret(operator, endpoint.id)) ?? notFound(`endpoint ${endpoint.id}`);
    printSecret({ id: id(endpoint.id), secret, previousSecretUntil: previousUntil }, options.json);
  });
}

async function test(text: string, options: Json): Promise<void> {
  await withEndpoint(text, async (operator, endpoint, allowPrivate) => {
    const sender = createSender({ allowPrivate, clock: operator.service.clock });
    const attempt = await sendTest(operator, sender, endpoint.id).finally(() => sender.close());
    if (!attempt) return notFound(`endpoint ${endpoint.id}`);
    const { status, durationMs, error } = attempt;
    if (options.json) printJson({ delivered: error === null, status, durationMs, error });
    else say(`${error ?? `answered ${status}`}, after ${durationMs} ms`);
    if (error !== null) process.exitCode = 1;
  });
}

async function deliveries(
  text: string,
  options: Json & { event?: string; state?: string; limit?: string },
): Promise<void> {
  const endpointId = parseId(text, 'endpoint');
  const limit = parseCount(options.limit ?? LISTED, '--limit', 1, LISTED_MAX);
  const state = options.state?.toUpperCase();
  const wanted = STATES.find((each) => each === state) ?? null;
  if (state !== undefined && !wanted) wrongUsage(`--state takes ${STATES.join(', ')}`);
  const eventId = options.event === undefined ? undefined : parseEventId(options.event);
  if (eventId !== undefined && (state !== undefined || options.limit !== undefined))
    wrongUsage('--event lists all attempts of one event: leave out --state and --limit');
  await withService(async (service) => {
    await requireEndpoint({ service }, endpointId);
    if (eventId !== undefined)
      return printAttempts(await listAttempts(service.db, endpointId, eventId), options);
    const found = await listDeliveries(service.db, endpointId, wanted, limit);
    if (options.json) return printJson(found);
    printTable(
      ['event', 'type', 'occurred', 'state', 'attempts', 'last answer', 'next'],
      found.map(({ eventId: event, type, occurredAt, state: now, attempts, lastAttempt, dueAt }) => [
        event,
        type,
        occurredAt.toISOString().slice(0, 19),
        now,
        String(attempts),
        lastAttempt ? (lastAttempt.error ?? String(lastAttempt.status)) : '',
        dueAt?.toISOString().slice(0, 19) ?? '',
      ]),
      ['last answer'],
    );
  });
}

function printAttempts(attempts: Awaited<ReturnType<typeof listAttempts>>, options: Json): void {
  if (options.json) printJson(attempts);
  else
    printTable(
      ['attempt', 'at', 'took', 'answer', 'error'],
      attempts.map(({ number, at, durationMs, status, error }) => [
        String(number),
        at.toISOString(),
        `${durationMs} ms`,
        status === null ? '' : String(status),
        error ?? '',
      ]),
      ['error'],
    );
}

async function sendAgain(
  text: string,
  options: Json & { event?: string; failedSince?: string },
): Promise<void> {
  const { event, failedSince } = options;
  if ((event === undefined) === (failedSince === undefined))
    wrongUsage('what to send again? Give either --event or --failed-since');
  const what =
    event === undefined
      ? { failedSince: parseStart(failedSince ?? '', '--failed-since') }
      : { eventId: parseEventId(event) };
  await withEndpoint(text, async (operator, endpoint) => {
    if (endpoint.disabledAt)
      fail(`endpoint ${endpoint.id} is off: \`scrip webhook enable ${endpoint.id}\` turns it on`);
    const count = await resend(operator, endpoint.id, what);
    if (count === 0 && 'eventId' in what) notFound(`event ${what.eventId} of endpoint ${endpoint.id}`);
    if (options.json) return printJson({ resent: count });
    say(`${numberOf(count, 'event')} will be sent again`);
  });
}
