import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { PROTOCOLS } from '../../model/protocols.ts';

/** Those with more states are searched by `npm run model`. */
const QUICK = ['batch and cancel', 'key rotation', 'approval and its effect'];

describe('the model of the protocols', () => {
  for (const { title, faults, check } of PROTOCOLS) {
    if (QUICK.includes(title))
      it(`finds nothing wrong in ${title}`, () => {
        assert.deepEqual(check().broken, undefined);
      });

    for (const [fault, says] of Object.entries(faults))
      it(`finds in ${title} that ${says}`, () => {
        const { broken } = check(fault);
        assert.ok(broken && broken.trace.length > 0);
      });
  }
});
