import type { Command } from 'commander';
import type { Queries } from '../db/pool.ts';
import { findMerchant, type MerchantInfo } from '../merchants/merchants.ts';
import { findProduct } from '../merchants/products.ts';
import { notFound, say } from './output.ts';
import { parseText } from './parse.ts';

/**
 * What the money commands have in common: a reference under which a repetition books once, and how they
 * print.
 */

const REFERENCE_MAX = 100;

export type MoneyOptions = { json?: boolean; reference: string };

/** Adds the options of a money command. */
export function asMoneyCommand(command: Command): Command {
  return command
    .requiredOption('--reference <reference>', 'your reference, under which a repetition books once')
    .option('--json', 'print JSON');
}

export function parseReference(text: string): string {
  return parseText(text, '--reference', REFERENCE_MAX);
}

/** Says what a money command came to. */
export function sayBooked(replayed: boolean, text: string): void {
  say(`${replayed ? 'this was booked before; ' : ''}${text}`);
}

/** @throws CommandError where there is no such merchant */
export async function requireMerchant(db: Queries, merchantId: number): Promise<MerchantInfo> {
  return (await findMerchant(db, merchantId)) ?? notFound(`merchant ${merchantId}`);
}

/** @throws CommandError where there is no such product */
export async function requireProduct(db: Queries, code: string) {
  const what = /^[\w.-]{1,50}$/.test(code) ? `product ${code}` : 'such product';
  return (await findProduct(db, code)) ?? notFound(`${what}: \`scrip product list\` shows all`);
}
