import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readPrometheus } from '../../../test/support/prometheus.ts';
import { Histogram } from '../../base/histogram.ts';
import { formatMetrics } from './prometheus-text.ts';
import { RequestMetrics, requestFamilies } from './request-metrics.ts';

describe("Prometheus' text form", () => {
  it('has the help, the type and the samples of each family', () => {
    const histogram = new Histogram([0.5, 1]);
    for (const value of [0.25, 0.75, 2, 4]) histogram.observe(value);
    const text = formatMetrics([
      { name: 'requests_total', help: 'All.', type: 'counter', samples: [{ labels: { a: '1', b: '2' }, value: 3 }] },
      { name: 'nothing', help: 'No samples.', type: 'gauge', samples: [] },
      { name: 'took_seconds', help: 'Time.', type: 'histogram', samples: [{ labels: { a: '1' }, histogram }] },
      { name: 'bytes', help: 'Size.', type: 'gauge', samples: [{ value: -1.5e-7 }] },
    ]);
    expect(text).toBe(`# HELP requests_total All.
# TYPE requests_total counter
requests_total{a="1",b="2"} 3
# HELP took_seconds Time.
# TYPE took_seconds histogram
took_seconds_bucket{a="1",le="0.5"} 1
took_seconds_bucket{a="1",le="1"} 2
took_seconds_bucket{a="1",le="+Inf"} 4
took_seconds_sum{a="1"} 7
took_seconds_count{a="1"} 4
# HELP bytes Size.
# TYPE bytes gauge
bytes -1.5e-7
`);
    expect([...readPrometheus(text).keys()]).toEqual(['requests_total', 'took_seconds', 'bytes']);
  });

  it('keeps any label and any help', () => {
    const anyText = fc.string({ unit: fc.constantFrom('\\', '"', '\n', 'n', '{', '}', ',', '=', ' ', 'ü', '💧') });
    fc.assert(
      fc.property(anyText, anyText, fc.double({ noNaN: true }), (help, label, value) => {
        const text = formatMetrics([{ name: 'a', help, type: 'gauge', samples: [{ labels: { label }, value }] }]);
        const family = readPrometheus(text).get('a');
        expect(family?.help).toBe(help);
        expect(family?.samples).toEqual([{ name: 'a', labels: { label }, value: value === 0 ? 0 : value }]);
      }),
    );
  });
});

describe('The requests of a service', () => {
  it('are counted by operation and status, and their times by operation', () => {
    const blob = new RequestMetrics();
    blob.observe('Put Blob', 201, 3);
    blob.observe('Put Blob', 201, 30);
    blob.observe('Put Blob', 409, 300);
    blob.observe('Get Blob', 0, 1);
    blob.observe(undefined, 403, 0);
    const families = readPrometheus(formatMetrics(requestFamilies({ blob })));
    const counted = families
      .get('holdfast_requests_total')!
      .samples.map(({ labels: l, value }) => [...[l.service, l.operation, l.status], value]);
    expect(counted).toEqual([
      ['blob', 'Put Blob', '201', 2],
      ['blob', 'Put Blob', '409', 1],
      ['blob', 'Get Blob', 'disconnected', 1],
      ['blob', 'none', '403', 1],
    ]);
    const times = families.get('holdfast_request_duration_seconds')!.samples;
    const ofPut = times.filter(({ labels }) => labels.operation === 'Put Blob');
    expect(ofPut.find(({ labels }) => labels.le === '0.05')?.value).toBe(2);
    expect(ofPut.find(({ name }) => name.endsWith('_sum'))?.value).toBeCloseTo(0.333);
  });
});
