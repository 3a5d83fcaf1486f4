import type { Command } from 'commander';
import { deliveriesOfWebhooks, type WebhookAttempt, type WebhookDelivery } from '../operator/deliveries.ts';
import { type WebhookEndpoint, webhooks } from '../operator/webhooks.ts';
import { EVENTS } from '../webhooks/outbox.ts';
import { numberOf, printFields, printSecret, printTable, quoted, say, wrongUsage } from './output.ts';
import { checkDate, parseCount, parseEventId, parseId, repeat } from './parse.ts';
import { LISTED_MAX, listCommand, performCommand } from './perform.ts';

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
    .description('send deliveries again: one event, or all that failed since a time')
    .option('--event <eventId>', 'this event')
    .option('--failed-since <date>', 'all failed deliveries of events since this day, or date and time')
    .option('--json', 'print JSON')
    .action(sendAgain);
}

async function add(
  options: Json & { merchant: string; url: string; event?: readonly string[]; full?: boolean },
): Promise<void> {
  const events = options.event?.map(
    (name) =>
      EVENTS.find((each) => each === name) ??
      wrongUsage(`${quoted(name)} is not an event: --event takes ${EVENTS.join(', ')}`),
  );
  const input = {
    merchantId: String(parseId(options.merchant)),
    url: options.url,
    ...(events && { events: [...new Set(events)] }),
    full: options.full ?? false,
  };
  await performCommand(webhooks.add, input, options, (added) => printSecret(added, false));
}

async function list(options: Json & { merchant?: string }): Promise<void> {
  const filters = options.merchant === undefined ? {} : { merchantId: String(parseId(options.merchant)) };
  await listCommand(webhooks.list, filters, LISTED_MAX, options, (endpoints: WebhookEndpoint[]) =>
    printTable(
      ['id', 'merchant', 'url', 'events', 'state', 'waiting', 'failed'],
      endpoints.map((each) => [
        each.id,
        each.merchantId,
        each.url,
        [...(each.events ?? ['all']), ...(each.full ? ['(full)'] : [])],
        stateOf(each),
        String(each.pending),
        String(each.failed),
      ]),
      ['url', 'state'],
    ),
  );
}

function stateOf({ disabledAt, disabledReason, failingSince }: WebhookEndpoint): string {
  if (disabledAt) return `off: ${disabledReason}`;
  return failingSince ? `failing since ${failingSince.toISOString()}` : 'on';
}

const endpointOf = (text: string) => ({ id: String(parseId(text, 'endpoint')) });

async function show(text: string, options: Json): Promise<void> {
  await performCommand(webhooks.show, endpointOf(text), options, (endpoint) =>
    printFields({ ...endpoint, events: endpoint.events?.join(', ') ?? 'all' }),
  );
}

async function remove(text: string, options: Json): Promise<void> {
  await performCommand(webhooks.remove, endpointOf(text), options, () => say('removed'));
}

async function enable(text: string, options: Json): Promise<void> {
  await performCommand(webhooks.enable, endpointOf(text), options, () => say('on'));
}

async function rotate(text: string, options: Json): Promise<void> {
  await performCommand(webhooks.rotate, endpointOf(text), options, (made) => printSecret(made, false));
}

async function test(text: string, options: Json): Promise<void> {
  await performCommand(
    webhooks.test,
    endpointOf(text),
    options,
    ({ status, durationMs, error }) => say(`${error ?? `answered ${status}`}, after ${durationMs} ms`),
    {
      end({ delivered }) {
        if (!delivered) process.exitCode = 1;
      },
    },
  );
}

async function deliveries(
  text: string,
  options: Json & { event?: string; state?: string; limit?: string },
): Promise<void> {
  const { id } = endpointOf(text);
  const limit = parseCount(options.limit ?? LISTED, '--limit', 1, LISTED_MAX);
  const state = options.state?.toUpperCase();
  if (state !== undefined && !STATES.some((each) => each === state))
    wrongUsage(`--state takes ${STATES.join(', ')}`);
  const eventId = options.event === undefined ? undefined : parseEventId(options.event);
  if (eventId !== undefined && (state !== undefined || options.limit !== undefined))
    wrongUsage('--event lists all attempts of one event: leave out --state and --limit');
  if (eventId !== undefined)
    return listCommand(deliveriesOfWebhooks.attempts, { id, eventId }, undefined, options, printAttempts);
  await listCommand(
    deliveriesOfWebhooks.deliveries,
    { id, ...(state && { state }) },
    limit,
    options,
    printDeliveries,
  );
}

function printDeliveries(found: WebhookDelivery[]): void {
  printTable(
    ['event', 'type', 'occurred', 'state', 'attempts', 'last answer', 'next'],
    found.map(({ eventId, type, occurredAt, state, attempts, lastAttempt, dueAt }) => [
      eventId,
      type,
      occurredAt.toISOString().slice(0, 19),
      state,
      String(attempts),
      lastAttempt ? (lastAttempt.error ?? String(lastAttempt.status)) : '',
      dueAt?.toISOString().slice(0, 19) ?? '',
    ]),
    ['last answer'],
  );
}

function printAttempts(attempts: WebhookAttempt[]): void {
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
  if (failedSince !== undefined) checkDate(failedSince, '--failed-since');
  const what = event === undefined ? { failedSince: failedSince ?? '' } : { eventId: parseEventId(event) };
  await performCommand(deliveriesOfWebhooks.resend, { ...endpointOf(text), ...what }, options, ({ resent }) =>
    say(`${numberOf(resent, 'event')} will be sent again`),
  );
}
