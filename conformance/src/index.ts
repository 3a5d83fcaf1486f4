/** Checks a server of the voucher interface against its rules. */

export { type Plan, type Report, type Result, RULES, runConformance, Unready } from './run.ts';
