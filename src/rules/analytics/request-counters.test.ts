import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { anAnswered } from '../../../test/support/access-record.ts';
import type { AccessRecord } from './access-record.ts';
import {
  countRequest,
  createCounters,
  mergeCounters,
  metricsColumns,
  parseCounters,
  type RequestCounters,
} from './request-counters.ts';

const rowOf = (tally: RequestCounters) =>
  Object.fromEntries(metricsColumns(tally).map(({ name, value }) => [name, value.value]));

function tallied(requests: readonly AccessRecord[]): RequestCounters {
  const tally = createCounters();
  for (const request of requests) countRequest(tally, request);
  return tally;
}

describe('A tally', () => {
  it('counts, adds up, and averages what succeeded', () => {
    const row = rowOf(
      tallied([
        anAnswered({ milliseconds: 10, serverMilliseconds: 4, bytesIn: 100, bytesOut: 1 }),
        anAnswered({ milliseconds: 30, serverMilliseconds: 8, bytesIn: 50, bytesOut: 2, by: 'SAS' }),
        anAnswered({ milliseconds: 900, status: 404, code: 'BlobNotFound' }),
        anAnswered({ milliseconds: 900, status: 503, code: 'ServerBusy' }),
        anAnswered({ milliseconds: 900, status: 500, code: 'InternalError' }),
      ]),
    );
    expect(row).toMatchObject({
      TotalRequests: 5n,
      TotalBillableRequests: 3n,
      TotalIngress: 450n,
      TotalEgress: 3n,
      Success: 1n,
      SASSuccess: 1n,
      AnonymousSuccess: 0n,
      ClientOtherError: 1n,
      ThrottlingError: 1n,
      ServerOtherError: 1n,
      AverageE2ELatency: 20,
      AverageServerLatency: 6,
      PercentSuccess: 40,
      PercentThrottlingError: 20,
      Availability: 75,
    });
  });

  it('is 100 % without requests', () => {
    expect(rowOf(createCounters())).toMatchObject({ TotalRequests: 0n, Availability: 100, AverageE2ELatency: 0 });
  });

  it('is the same whether it was stored in one step or in many', () => {
    const request = fc
      .record({
        status: fc.constantFrom(200, 201, 304, 403, 404, 500, 503, undefined),
        by: fc.constantFrom('key', 'SAS', 'anonymous' as const),
        milliseconds: fc.integer({ min: 0, max: 10_000 }),
        bytesIn: fc.nat(),
        bytesOut: fc.nat(),
      })
      .map((parts) => anAnswered(parts as Partial<AccessRecord>));
    fc.assert(
      fc.property(fc.array(fc.array(request)), (parts) => {
        let written = createCounters();
        for (const part of parts) {
          const columns = new Map(metricsColumns(written).map(({ name, value }) => [name, value]));
          const next = tallied(part);
          mergeCounters(
            next,
            parseCounters((name) => columns.get(name)),
          );
          written = next;
        }
        const [one, other] = [rowOf(written), rowOf(tallied(parts.flat()))];
        for (const name of Object.keys(one)) expect(Number(one[name])).toBeCloseTo(Number(other[name]), 6);
      }),
    );
  });
});
