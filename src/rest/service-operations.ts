/** The operations on the service itself, which all services have. */
import type { ServiceName } from '../services/common/names.ts';
import { getServiceProperties, getServiceStats, setServiceProperties } from '../services/common/service-properties.ts';
import type { Storage } from '../services/common/storage.ts';
import { type Operation, operationOn, preflightOperation, type Shape } from './operation.ts';
import { xmlBody } from './params.ts';
import { xmlReply } from './reply.ts';
import {
  parseServiceProperties,
  requireSecondary,
  servicePropertiesXml,
  serviceStatsXml,
} from './xml/service-properties.ts';

const operation = operationOn<Storage>();
const TEST = 'test/end-to-end/service-operations.test.ts';

/** `shapes`: all shapes of the service. */
export function serviceOperations(service: ServiceName, shapes: readonly Shape[]): readonly Operation<Storage>[] {
  const title = `${service[0]!.toUpperCase()}${service.slice(1)}`;
  return [
    operation({
      name: `Get ${title} Service Properties`,
      route: 'GET /',
      query: { comp: 'properties', restype: 'service' },
      permission: 'read',
      test: TEST,
      input: {},
      run: (storage) => getServiceProperties(storage, service),
      reply: (properties, { version }) => xmlReply(200, servicePropertiesXml(properties, service, version)),
    }),
    operation({
      name: `Set ${title} Service Properties`,
      route: 'PUT /',
      query: { comp: 'properties', restype: 'service' },
      permission: 'write',
      test: TEST,
      input: { document: xmlBody('StorageServiceProperties') },
      run: (storage, { document }) => setServiceProperties(storage, service, parseServiceProperties(document, service)),
      reply: () => ({ status: 202 }),
    }),
    ...(service === 'file' ? [] : [statsOperation(title)]),
    ...shapes.map((shape) => preflightOperation<Storage>(`Preflight ${title} Request`, shape, TEST)),
  ];
}

/** The File service has no such operation. */
function statsOperation(title: string): Operation<Storage> {
  return operation({
    name: `Get ${title} Service Stats`,
    route: 'GET /',
    query: { comp: 'stats', restype: 'service' },
    permission: 'read',
    test: TEST,
    input: { requireSecondary },
    run: getServiceStats,
    reply: (stats) => xmlReply(200, serviceStatsXml(stats)),
  });
}
