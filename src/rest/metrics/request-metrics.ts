/** Counts the requests of one service by operation and status, and their latency by operation. */
import { Histogram, SECONDS_BOUNDS } from '../../base/histogram.ts';
import type { ServiceName } from '../../services/common/names.ts';
import type { MetricFamily } from './prometheus-text.ts';

/** In place of a status: the client disconnected before it had the reply. */
export const DISCONNECTED = 0;

/** There are as many entries as the service has operations: no label holds anything that a client sent. */
interface OperationFigures {
  readonly byStatus: Map<number, number>;
  readonly seconds: Histogram;
}

export class RequestMetrics {
  readonly #operations = new Map<string | undefined, OperationFigures>();

  /** @param operation undefined: the request was refused before it was routed, or called an endpoint of the server */
  observe(operation: string | undefined, status: number, milliseconds: number): void {
    let figures = this.#operations.get(operation);
    if (!figures) {
      figures = { byStatus: new Map(), seconds: new Histogram(SECONDS_BOUNDS) };
      this.#operations.set(operation, figures);
    }
    const { byStatus, seconds } = figures;
    byStatus.set(status, (byStatus.get(status) ?? 0) + 1);
    seconds.observe(milliseconds / 1_000);
  }

  list(): readonly (readonly [operation: string | undefined, figures: OperationFigures])[] {
    return [...this.#operations];
  }
}

export type ServiceMetrics = Readonly<Partial<Record<ServiceName, RequestMetrics>>>;

export function requestFamilies(services: ServiceMetrics): MetricFamily[] {
  const operations = Object.entries(services).flatMap(([service, metrics]) =>
    metrics.list().map(([operation = 'none', figures]) => ({ labels: { service, operation }, ...figures })),
  );
  return [
    {
      name: 'holdfast_requests_total',
      help: 'Requests by operation and HTTP status.',
      type: 'counter',
      samples: operations.flatMap(({ labels, byStatus }) =>
        [...byStatus].map(([status, value]) => ({ labels: { ...labels, status: formatStatus(status) }, value })),
      ),
    },
    {
      name: 'holdfast_request_duration_seconds',
      help: 'Time from the arrival of a request to the head of its reply, without the time that the server waited for the body.',
      type: 'histogram',
      samples: operations.map(({ labels, seconds: histogram }) => ({ labels, histogram })),
    },
  ];
}

function formatStatus(status: number): string {
  return status === DISCONNECTED ? 'disconnected' : String(status);
}
