import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Sending, type Trace, whyRefused } from '../../model/traces.ts';

/** A sending from one time to another, of request 0 unless another one is named. */
const sent = (from: number, to: number, code: string, request = 0): Sending => ({
  request,
  from,
  to,
  code,
  id: code.startsWith('00') ? 'id' : null,
});

const ROW = { id: 'id', request: 0 };

const trace = (sendings: readonly Sending[], rows: Trace['rows'] = [ROW], claim: string | null = 'id') => ({
  reference: 'order 1',
  sendings,
  rows,
  claim,
});

const RIGHT: Readonly<Record<string, ReturnType<typeof trace>>> = {
  'a request': trace([sent(1, 2, '00')]),
  'three copies at the same time': trace([
    sent(1, 5, '00 replayed'),
    sent(2, 4, '00'),
    sent(3, 6, '00 replayed'),
  ]),
  'another request under the reference': trace([sent(1, 3, '00'), sent(2, 4, '94', 1)]),
  'three requests at the same time': trace([sent(1, 5, '94', 1), sent(2, 4, '00'), sent(3, 6, '51', 2)]),
  'a decline, and its repetition': trace([sent(1, 2, '51'), sent(3, 4, '00')]),
  'a decline, and another request': trace([sent(1, 2, '51', 1), sent(3, 4, '00')]),
  'no answer, and a replay': trace([sent(1, 2, 'unknown'), sent(3, 4, '00 replayed')]),
  'no answer, and nothing happened': trace([sent(1, 2, 'unknown'), sent(3, 4, '00')]),
  'many repetitions without an answer': trace([
    ...Array.from({ length: 30 }, (_, at) => sent(at, at + 0.5, 'unknown', at % 2)),
    sent(40, 41, '00'),
  ]),
  'a request that is booked after its decline was answered to a copy': trace([
    sent(1, 2, 'unknown'),
    sent(3, 4, '43'),
  ]),
};

/** Histories that no right service has. Each fits a service with one fault. */
const FORGED: Readonly<Record<string, ReturnType<typeof trace>>> = {
  'a row too many': trace([sent(1, 2, '00')], [ROW, { id: 'other', request: 0 }]),
  'a success without a row': trace([sent(1, 2, '00')], [], null),
  'a row without a request': trace([], [{ id: 'id', request: -1 }]),
  'a row of another amount': trace([sent(1, 2, '00')], [{ id: 'id', request: -1 }]),
  'a row under another id': trace([sent(1, 2, '00')], [{ id: 'other', request: 0 }], 'other'),
  'a claim of another row': trace([sent(1, 2, '00')], [ROW], 'other'),
  'two copies answered as new': trace([sent(1, 3, '00'), sent(2, 4, '00')]),
  'a replay of nothing': trace([sent(1, 2, '00 replayed')]),
  'a replay before the request is sent': trace([sent(1, 2, '00 replayed'), sent(3, 4, '00')]),
  'a reference that is used by the request itself': trace([sent(1, 2, '00'), sent(3, 4, '94')]),
  'a reference that nothing has used': trace([sent(1, 2, '94')], [], null),
  'two requests under one reference': trace([sent(1, 3, '00'), sent(2, 4, '00', 1)]),
  'a request that was declined and booked': trace([sent(1, 2, '51')]),
  'a decline after a success': trace([sent(1, 2, '00'), sent(3, 4, '51')]),
};

describe('the trace of a reference', () => {
  for (const isSharded of [false, true]) {
    const where = isSharded ? 'on several shards' : 'on one server';

    it(`is accepted ${where} if the model has an order of its steps for it`, () => {
      for (const [name, each] of Object.entries(RIGHT))
        assert.equal(whyRefused({ ...each, isSharded }), undefined, name);
    });

    for (const [name, each] of Object.entries(FORGED))
      it(`is refused ${where} with ${name}`, () => {
        assert.match(whyRefused({ ...each, isSharded }) ?? 'accepted', /^order 1: \w.{20,}/);
      });
  }
});
