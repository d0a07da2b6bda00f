/** GET /metrics: figures about the server for Prometheus. */
import { commonErrors, errorFactory } from '../../services/common/errors.ts';
import { PROMETHEUS_CONTENT_TYPE } from '../metrics/prometheus-text.ts';
import { isLocalPeer } from './guard.ts';
import type { ManagementEndpoints } from './management-endpoints.ts';

const fail = errorFactory(commonErrors);

interface MetricsEndpointOptions {
  readonly format: () => Promise<string>;
  /** Whether calls from other machines are accepted: names of accounts and queues are in the reply. */
  readonly allowsRemote: boolean;
}

export function metricsEndpoint({ format, allowsRemote }: MetricsEndpointOptions): ManagementEndpoints {
  return {
    'GET /metrics': async ({ incoming }) => {
      if (!allowsRemote && !isLocalPeer(incoming.socket))
        throw fail('AuthorizationFailure', undefined, 'From another machine this needs --remote-metrics.');
      return { status: 200, headers: { 'Content-Type': PROMETHEUS_CONTENT_TYPE }, body: await format() };
    },
  };
}
