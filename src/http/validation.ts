import { AjvCompiler } from '@fastify/ajv-compiler';
import type { FastifyServerOptions } from 'fastify';
import { parseDateTime } from './wire.ts';

/** How servers check requests by their schemas. A process compiles a schema once, for all of its servers. */
export const VALIDATION = {
  schemaController: { compilersFactory: { buildValidator: AjvCompiler() } },
  ajv: {
    customOptions: {
      allErrors: true,
      coerceTypes: false,
      useDefaults: false,
      removeAdditional: false,
      allowUnionTypes: true,
      // 1e999 is a number. The core refuses it as an amount.
      strictNumbers: false,
    },
    onCreate(ajv) {
      ajv.addFormat('date-time', (text: string) => parseDateTime(text) !== undefined);
    },
  },
} satisfies FastifyServerOptions;
