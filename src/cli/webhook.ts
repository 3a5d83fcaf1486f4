import type { Command } from 'commander';
import type { Operator } from '../context.ts';
import { findMerchant } from '../merchants/merchants.ts';
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
import { EVENTS, type EventType } from '../webhooks/events.ts';
import { createSender } from '../webhooks/send.ts';
import { withOperator, withService } from './open.ts';
import { fail, printFields, printJson, printTable, quoted } from './output.ts';
import { parseCount, parseDate, parseId } from './parse.ts';

type Json = { readonly json?: boolean };

const MOST_SHOWN = 10_000;

export function registerWebhook(program: Command): void {
  const webhook = program.command('webhook').description('where merchants are told of what happens');
  const collect = (value: string, before: string[] = []) => [...before, value];
  webhook
    .command('add')
    .description('add an endpoint; its secret is shown once')
    .requiredOption('--merchant <id>', 'whose events')
    .requiredOption('--url <url>', 'where to: https, a public address')
    .option('--event <type>', `only this event; may be given again (default: all). ${EVENTS.join(', ')}`, collect)
    .option('--full', "put a completed batch's vouchers, codes and PINs included, into its event (https only)")
    .option('--json', 'print JSON')
    .action(add);
  webhook
    .command('list')
    .description('the endpoints')
    .option('--merchant <id>', 'only of this merchant')
    .option('--json', 'print JSON')
    .action(list);
  webhook.command('show <id>').description('one endpoint').option('--json', 'print JSON').action(show);
  webhook.command('remove <id>').description('end an endpoint; its attempts can still be seen').action(remove);
  webhook.command('enable <id>').description('turn an endpoint on again that was turned off').action(enable);
  webhook
    .command('rotate <id>')
    .description('give an endpoint another secret; for 24 hours both sign')
    .option('--json', 'print JSON')
    .action(rotate);
  webhook
    .command('test <id>')
    .description('send an event webhook.test to an endpoint, once, and say what came of it')
    .option('--json', 'print JSON')
    .action(test);
  webhook
    .command('deliveries <id>')
    .description('what was sent to an endpoint, newest first')
    .option('--event <eventId>', 'every attempt of this one')
    .option('--state <state>', 'only those that are PENDING, DELIVERED or FAILED')
    .option('--limit <count>', 'at most this many', '50')
    .option('--json', 'print JSON')
    .action(deliveries);
  webhook
    .command('resend <id>')
    .description('send again: one event, or all that failed since a time')
    .option('--event <eventId>', 'this one')
    .option('--failed-since <date>', 'all that failed and happened since then')
    .option('--json', 'print JSON')
    .action(sendAgain);
}

async function add(
  options: Json & { merchant: string; url: string; event?: readonly string[]; full?: boolean },
): Promise<void> {
  const merchantId = parseId(options.merchant);
  const events = options.event?.map(
    (name) =>
      EVENTS.find((each) => each === name) ?? fail(`${quoted(name)} is no event: --event takes ${EVENTS.join(', ')}`),
  );
  await withOperator(async (operator, { webhookAllowPrivate }) => {
    if (!(await findMerchant(operator.service.db, merchantId))) fail(`there is no merchant ${merchantId}`);
    const wanted = {
      merchantId,
      url: options.url,
      events: events ? ([...new Set(events)] as EventType[]) : null,
      full: options.full ?? false,
    };
    const added = await addEndpoint(operator, wanted, webhookAllowPrivate).catch((error: Error) => {
      if (error instanceof ForbiddenAddress || error instanceof TooManyEndpoints) fail(`--url: ${error.message}`);
      throw error;
    });
    const shown = { id: String(added.id), secret: added.secret };
    if (options.json) return printJson(shown);
    printFields(shown);
    process.stdout.write('The secret is not shown again.\n');
  });
}

async function list(options: Json & { merchant?: string }): Promise<void> {
  const merchantId = options.merchant === undefined ? null : parseId(options.merchant);
  await withService(async ({ db }) => {
    const endpoints = await listEndpoints(db, merchantId);
    if (options.json) return printJson(endpoints.map(toJson));
    printTable(
      ['id', 'merchant', 'url', 'events', 'state', 'waiting', 'failed'],
      endpoints.map((each) => [
        String(each.id),
        String(each.merchantId),
        each.url,
        (each.events?.join('\n') ?? 'all') + (each.full ? '\n(full)' : ''),
        stateOf(each),
        String(each.pending),
        String(each.failed),
      ]),
    );
  });
}

function stateOf({ disabledAt, disabledReason, failingSince }: Endpoint): string {
  if (disabledAt) return `off: ${disabledReason}`;
  return failingSince ? `failing since ${failingSince.toISOString()}` : 'on';
}

function toJson(endpoint: Endpoint) {
  const { id, merchantId, ...rest } = endpoint;
  return { id: String(id), merchantId: String(merchantId), enabled: endpoint.disabledAt === null, ...rest };
}

/** Runs a command on an endpoint that must exist. */
async function withEndpoint(
  text: string,
  run: (operator: Operator, endpoint: Endpoint, allowPrivate: boolean) => Promise<void>,
): Promise<void> {
  const id = parseId(text, 'endpoint');
  await withOperator(async (operator, { webhookAllowPrivate }) => {
    const endpoint = (await findEndpoint(operator.service.db, id)) ?? fail(`there is no endpoint ${id}`);
    await run(operator, endpoint, webhookAllowPrivate);
  });
}

async function show(id: string, options: Json): Promise<void> {
  await withEndpoint(id, async (_operator, endpoint) => {
    if (options.json) return printJson(toJson(endpoint));
    printFields({ ...toJson(endpoint), events: endpoint.events?.join(', ') ?? 'all' });
  });
}

async function remove(id: string): Promise<void> {
  await withEndpoint(id, async (operator, endpoint) => {
    await removeEndpoint(operator, endpoint.id);
    process.stdout.write('removed\n');
  });
}

async function enable(id: string): Promise<void> {
  await withEndpoint(id, async (operator, endpoint) => {
    await enableEndpoint(operator, endpoint.id);
    process.stdout.write('on\n');
  });
}

async function rotate(id: string, options: Json): Promise<void> {
  await withEndpoint(id, async (operator, endpoint) => {
    const { secret, previousUntil } = (await rotateSecret(operator, endpoint.id)) ?? fail(`there is no endpoint ${id}`);
    const shown = { id: String(endpoint.id), secret, previousSecretUntil: previousUntil };
    if (options.json) return printJson(shown);
    printFields(shown);
    process.stdout.write('The secret is not shown again.\n');
  });
}

async function test(id: string, options: Json): Promise<void> {
  await withEndpoint(id, async (operator, endpoint, allowPrivate) => {
    const sender = createSender({ allowPrivate, clock: operator.service.clock });
    const attempt = await sendTest(operator, sender, endpoint.id).finally(() => sender.close());
    if (!attempt) return fail(`there is no endpoint ${id}`);
    const { status, durationMs, error } = attempt;
    if (options.json) printJson({ delivered: error === null, status, durationMs, error });
    else process.stdout.write(`${error ?? `answered ${status}`}, after ${durationMs} ms\n`);
    if (error !== null) process.exitCode = 1;
  });
}

const STATES = ['PENDING', 'DELIVERED', 'FAILED'] as const;

async function deliveries(
  id: string,
  options: Json & { event?: string; state?: string; limit: string },
): Promise<void> {
  const most = parseCount(options.limit, '--limit', 1, MOST_SHOWN);
  const state = options.state?.toUpperCase();
  const wanted = STATES.find((each) => each === state) ?? null;
  if (state !== undefined && !wanted) fail(`--state takes ${STATES.join(', ')}`);
  const eventId = options.event === undefined ? undefined : parseEventId(options.event);
  await withEndpoint(id, async ({ service: { db } }, endpoint) => {
    if (eventId !== undefined) return showAttempts(await listAttempts(db, endpoint.id, eventId), options);
    const found = await listDeliveries(db, endpoint.id, wanted, most);
    if (options.json) return printJson(found);
    printTable(
      ['event', 'type', 'occurred', 'state', 'attempts', 'last answer', 'next'],
      found.map(({ eventId: event, type, occurredAt, state: now, attempts, lastAttempt, dueAt }) => [
        event,
        type,
        occurredAt.toISOString(),
        now,
        String(attempts),
        lastAttempt ? (lastAttempt.error ?? String(lastAttempt.status)) : '',
        dueAt?.toISOString() ?? '',
      ]),
    );
  });
}

function showAttempts(attempts: Awaited<ReturnType<typeof listAttempts>>, options: Json): void {
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
    );
}

async function sendAgain(id: string, options: Json & { event?: string; failedSince?: string }): Promise<void> {
  const { event, failedSince } = options;
  if ((event === undefined) === (failedSince === undefined))
    fail('what to send again: give either --event or --failed-since');
  const what =
    event === undefined
      ? { failedSince: parseDate(failedSince ?? '', '--failed-since') }
      : { eventId: parseEventId(event) };
  await withEndpoint(id, async (operator, endpoint) => {
    if (endpoint.disabledAt) fail(`endpoint ${id} is off: turn it on first by \`scrip webhook enable ${id}\``);
    const count = await resend(operator, endpoint.id, what);
    if (count === 0 && event !== undefined) fail(`endpoint ${id} has no event ${event}`);
    if (options.json) return printJson({ resent: count });
    process.stdout.write(`${count} to be sent again\n`);
  });
}

/** The id as it is listed, or as receivers get it in the header webhook-id. */
function parseEventId(text: string): string {
  const hex = text.replace(/^msg_/, '').replaceAll('-', '').toLowerCase();
  const [, ...parts] = /^([0-9a-f]{8})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{12})$/.exec(hex) ?? [];
  return parts.length > 0 ? parts.join('-') : fail(`${quoted(text)} is no event id`);
}
