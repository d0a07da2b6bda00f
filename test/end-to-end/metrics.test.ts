/** GET /metrics: Prometheus' text form, and figures that are true. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { metricsEndpoint } from '../../src/rest/admin/metrics-endpoint.ts';
import { readPrometheus } from '../support/prometheus.ts';
import { root } from '../support/repository-copy.ts';
import { type Engine, onEngine, onEveryEngine, type Running } from '../support/test-server.ts';

async function scrape({ server }: Running, url = server.blobUrl) {
  const reply = await fetch(new URL('/metrics', url));
  expect(reply.status).toBe(200);
  expect(reply.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
  const families = readPrometheus(await reply.text());
  const sum = (name: string, labels: Readonly<Record<string, string>> = {}) => {
    const samples = families.get(name.replace(/_(?:sum|count)$/, ''))?.samples ?? families.get(name)?.samples ?? [];
    return samples
      .filter((sample) => sample.name === name)
      .filter((sample) => Object.entries(labels).every(([label, value]) => sample.labels[label] === value))
      .reduce((total, { value }) => total + value, 0);
  };
  return { families, sum };
}

/** Figures that the server takes in the background. */
async function until(
  running: Running,
  isTrue: (metrics: Awaited<ReturnType<typeof scrape>>) => boolean,
  pauseMilliseconds = 100,
) {
  for (;;) {
    const metrics = await scrape(running);
    if (isTrue(metrics)) return metrics;
    await sleep(pauseMilliseconds);
  }
}

describe('GET /metrics', () => {
  onEveryEngine((running) => {
    it('is strictly of the form that Prometheus reads, on the port of every service', async () => {
      const { server } = running;
      for (const url of [server.blobUrl, server.queueUrl, server.tableUrl]) {
        const { families } = await scrape(running, url);
        expect(families.get('process_resident_memory_bytes')?.samples[0]?.value).toBeGreaterThan(1e7);
        expect(families.get('holdfast_leases_held')?.type).toBe('gauge');
      }
    });
  });

  for (const engine of ['LMDB', 'memory'] as const) onEngine(engine, countsOn(engine), { start: { testClock: true } });
});

function countsOn(engine: Engine) {
  return (running: Running) => {
    it('counts requests by operation and status, with their latency', async () => {
      const before = await scrape(running);
      const container = await running.newContainer();
      const blob = container.getBlockBlobClient('a');
      await blob.upload('x', 1);
      await blob.upload('x', 1);
      await blob.upload('x', 1, { conditions: { ifNoneMatch: '*' } }).catch(() => {});
      await running.queues
        .getQueueClient('no-such-queue')
        .getProperties()
        .catch(() => {});
      const after = await scrape(running);
      const more = (labels: Readonly<Record<string, string>>) =>
        after.sum('holdfast_requests_total', labels) - before.sum('holdfast_requests_total', labels);
      expect(more({ service: 'blob', operation: 'Put Blob', status: '201' })).toBe(2);
      expect(more({ service: 'blob', operation: 'Put Blob', status: '409' })).toBe(1);
      expect(more({ service: 'queue', operation: 'Get Queue Metadata', status: '404' })).toBe(1);
      expect(after.sum('holdfast_request_duration_seconds_count', { operation: 'Put Blob' })).toBe(
        after.sum('holdfast_requests_total', { operation: 'Put Blob' }),
      );
      expect(after.sum('holdfast_request_duration_seconds_sum', { operation: 'Put Blob' })).toBeGreaterThan(0);
    });

    it('counts requests that no operation matched, and never by what the client sent', async () => {
      const before = await scrape(running);
      await running.request('GET', '/c/b', { key: 'bm90LXRoZS1rZXk=' });
      await fetch(new URL('/no-such-account/x', running.server.blobUrl));
      const after = await scrape(running);
      const more = (status: string) =>
        after.sum('holdfast_requests_total', { operation: 'none', status }) -
        before.sum('holdfast_requests_total', { operation: 'none', status });
      expect([more('403'), more('400')]).toEqual([1, 1]);
    });

    it('counts leases until they end', async () => {
      const container = await running.newContainer();
      const lease = async (name: string, seconds: number) => {
        const blob = container.getBlockBlobClient(name);
        await blob.upload('x', 1);
        const client = blob.getBlobLeaseClient();
        await client.acquireLease(seconds);
        return { blob, client };
      };
      const held = async () => (await scrape(running)).sum('holdfast_leases_held');
      const before = await held();
      const [one, two] = [await lease('one', 60), await lease('two', -1)];
      await lease('three', -1);
      await container.getBlobLeaseClient().acquireLease(60);
      expect((await held()) - before).toBe(4);
      await running.server.clock.advance(61);
      expect((await held()) - before).toBe(2);
      await one.blob.delete();
      await two.client.releaseLease();
      expect((await held()) - before).toBe(1);
      await container.delete();
      expect((await held()) - before).toBe(0);
    });

    it('counts the messages of each queue', async () => {
      const name = `metrics-${running.engine.toLowerCase()}`;
      const queue = running.queues.getQueueClient(name);
      await queue.create();
      for (const text of ['a', 'b', 'c']) await queue.sendMessage(text, { messageTimeToLive: 14_400 });
      await queue.sendMessage('short', { messageTimeToLive: 3_600 });
      await queue.receiveMessages();
      const depth = ({ sum }: Awaited<ReturnType<typeof scrape>>) =>
        sum('holdfast_queue_messages', { account: 'devstoreaccount1', queue: name });
      await until(running, (metrics) => depth(metrics) === 4);
      await running.server.clock.advance(7_200);
      await until(running, (metrics) => depth(metrics) === 3);
    });

    it('knows the bytes of extents, live and dead', async () => {
      const container = await running.newContainer();
      const blob = container.getBlockBlobClient('large');
      await blob.upload(Buffer.alloc(1 << 20, 7), 1 << 20);
      await until(running, ({ sum }) => sum('holdfast_extents_live_bytes') >= 1 << 20 && sum('holdfast_extents') >= 1);
      await blob.delete();
      const { sum } = await until(running, (metrics) => metrics.sum('holdfast_extents_live_bytes') < 1 << 20);
      expect(sum('holdfast_extents_dead_bytes')).toBeGreaterThanOrEqual(0);
    });

    it('samples the delay of the event loop from the first scrape on', async () => {
      await scrape(running);
      await until(running, ({ sum }) => sum('holdfast_event_loop_delay_seconds_count') >= 2);
    });

    if (engine === 'memory') return;
    it('counts groups of commits, their flushes, checkpoints, and the log', async () => {
      const before = await scrape(running);
      const container = await running.newContainer();
      const uploads = Array.from({ length: 20 }, (_, i) => container.getBlockBlobClient(`b${i}`).upload('x', 1));
      await Promise.all(uploads);
      const after = await scrape(running);
      const more = (name: string) => after.sum(name) - before.sum(name);
      expect(more('holdfast_commit_group_transactions_sum')).toBeGreaterThanOrEqual(21);
      expect(more('holdfast_commit_group_transactions_count')).toBe(more('holdfast_commit_flush_seconds_count'));
      expect(more('holdfast_commit_flush_seconds_sum')).toBeGreaterThan(0);
      expect(after.sum('holdfast_checkpoint_file_bytes')).toBeGreaterThan(0);
      expect(after.sum('holdfast_wal_bytes')).toBeGreaterThan(0);
      const checkpointed = before.sum('holdfast_checkpoint_seconds_count');
      // A log that is written to is checkpointed later, and the clock that a request reads is in the log, too.
      await until(running, ({ sum }) => sum('holdfast_checkpoint_seconds_count') > checkpointed, 2_500);
    });
  };
}

describe('The page about monitoring', () => {
  const names = (text: string) =>
    new Set([...text.matchAll(/\b(?:holdfast|process|nodejs)_[a-z_]+/g)].map(([name]) => name));
  const family = (name: string) => name.replace(/_(?:bucket|sum|count)$/, '');
  const page = readFileSync(join(root, 'docs', 'guide', 'monitoring.md'), 'utf8');
  const rows = page.match(/^\| `.*` \| (?:counter|gauge|histogram) \|.*$/gm)!.join('\n');

  onEngine('LMDB', documents, {});

  function documents(running: Running): void {
    it('names every metric that a server has, and no other', async () => {
      await running.newContainer();
      await running.queues.createQueue('documented');
      const { families } = await until(running, (metrics) => metrics.families.has('holdfast_queue_messages'));
      const withExtents = [
        ...families.keys(),
        'holdfast_extents',
        'holdfast_extents_live_bytes',
        'holdfast_extents_dead_bytes',
        'holdfast_smb_commands_total',
        'holdfast_smb_command_duration_seconds',
      ];
      expect([...names(rows)].sort()).toEqual([...new Set(withExtents)].sort());
    });
  }

  it('goes with a dashboard that asks for these metrics only', () => {
    const dashboard = readFileSync(join(root, 'docs', 'grafana-dashboard.json'), 'utf8');
    const { panels } = JSON.parse(dashboard) as { panels: { targets: { expr: string }[] }[] };
    const asked = panels.flatMap(({ targets }) => targets.flatMap(({ expr }) => [...names(expr)])).map(family);
    expect(panels.length).toBeGreaterThan(10);
    expect(asked.filter((name) => !names(rows).has(name))).toEqual([]);
    expect([...names(page)].map(family).filter((name) => !names(rows).has(name))).toEqual([]);
  });
});

describe('A caller from another machine', () => {
  const incoming = { socket: { remoteAddress: '10.1.2.3', localAddress: '10.1.2.4' } };
  const call = (allowsRemote: boolean) => {
    const endpoint = metricsEndpoint({ format: async () => 'text\n', allowsRemote })['GET /metrics']!;
    return endpoint({ incoming, query: {} } as unknown as Parameters<typeof endpoint>[0]);
  };

  it('is refused, since the reply names accounts and queues', async () => {
    await expect(call(false)).rejects.toMatchObject({
      status: 403,
      message: expect.stringContaining('--remote-metrics'),
    });
  });

  it('is answered by a server with --remote-metrics', async () => {
    expect(await call(true)).toMatchObject({ status: 200, body: 'text\n' });
  });
});
