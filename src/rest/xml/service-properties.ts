/** The properties of a service as XML, in and out. */

import { rfc1123 } from '../../base/time.ts';
import { childOf, type XmlElement } from '../../base/xml.ts';
import type { ServiceName } from '../../services/common/names.ts';
import {
  type Logging,
  type Metrics,
  NO_LOGGING,
  NO_METRICS,
  type ServiceProperties,
  type WantedProperties,
} from '../../services/common/service-properties.ts';
import type { ServiceStats } from '../../services/common/service-stats.ts';
import { invalidQuery, invalidXml, reader } from '../params.ts';
import { VERSION } from '../request.ts';
import { corsRulesXml, readCorsRules } from './cors-rules.ts';
import { booleanOf, integerOf, invalidNode, invalidValue, partsOf, requiredChild } from './xml-nodes.ts';

/** From this version on a policy says whether what it keeps may be removed for good. */
const PERMANENT_DELETE_SINCE = '2020-02-10';

/** What all services have, and what only the Blob service has. */
const COMMON = ['Logging', 'HourMetrics', 'MinuteMetrics', 'Cors'];
const OF_BLOBS = ['DefaultServiceVersion', 'DeleteRetentionPolicy', 'StaticWebsite'];

export function servicePropertiesXml(
  properties: ServiceProperties,
  service: ServiceName,
  requestVersion: string,
): string {
  const { logging = NO_LOGGING, hourMetrics = NO_METRICS, minuteMetrics = NO_METRICS, cors = [] } = properties;
  return (
    `<StorageServiceProperties>${loggingXml(logging)}<HourMetrics>${metricsXml(hourMetrics)}</HourMetrics>` +
    `<MinuteMetrics>${metricsXml(minuteMetrics)}</MinuteMetrics>${corsRulesXml(cors)}` +
    `${service === 'blob' ? ofBlobs(properties, requestVersion) : ''}</StorageServiceProperties>`
  );
}

function loggingXml({ version, read, write, delete: deletes, days }: Logging): string {
  return (
    `<Logging><Version>${version}</Version><Read>${read}</Read><Write>${write}</Write><Delete>${deletes}</Delete>` +
    `${retentionXml(days)}</Logging>`
  );
}

function metricsXml({ enabled, perApi, days }: Metrics): string {
  const apis = enabled ? `<IncludeAPIs>${perApi === true}</IncludeAPIs>` : '';
  return `<Version>1.0</Version><Enabled>${enabled}</Enabled>${apis}${retentionXml(days)}`;
}

function retentionXml(days: number | undefined): string {
  const policy = days === undefined ? '<Enabled>false</Enabled>' : `<Enabled>true</Enabled><Days>${days}</Days>`;
  return `<RetentionPolicy>${policy}</RetentionPolicy>`;
}

function ofBlobs({ defaultServiceVersion }: ServiceProperties, requestVersion: string): string {
  const permanent = requestVersion === '' || requestVersion >= PERMANENT_DELETE_SINCE;
  return (
    '<DeleteRetentionPolicy><Enabled>false</Enabled>' +
    `${permanent ? '<AllowPermanentDelete>false</AllowPermanentDelete>' : ''}</DeleteRetentionPolicy>` +
    '<StaticWebsite><Enabled>false</Enabled></StaticWebsite>' +
    (defaultServiceVersion ? `<DefaultServiceVersion>${defaultServiceVersion}</DefaultServiceVersion>` : '')
  );
}

export function readServiceProperties(root: XmlElement | undefined, service: ServiceName): WantedProperties {
  if (!root) throw invalidXml(1, 1, 'There is no document.');
  if (root.children.length === 0) throw invalidNode(root, 'There is no setting.');
  const parts = partsOf(root, service === 'blob' ? [...COMMON, ...OF_BLOBS] : COMMON);
  const read = <Value>(name: string, from: (part: XmlElement) => Value): Value | undefined => {
    const part = parts.get(name);
    return part && from(part);
  };
  return {
    logging: read('Logging', (part) => readLogging(part, service === 'table' ? ['1.0'] : ['1.0', '2.0'])),
    hourMetrics: read('HourMetrics', readMetrics),
    minuteMetrics: read('MinuteMetrics', readMetrics),
    cors: read('Cors', readCorsRules),
    defaultServiceVersion: read('DefaultServiceVersion', readVersion),
    deleteRetention: read('DeleteRetentionPolicy', readDeleteRetention),
    staticWebsite: read('StaticWebsite', readWebsite),
  };
}

function readLogging(logging: XmlElement, versions: readonly string[]): Logging {
  partsOf(logging, ['Version', 'Delete', 'Read', 'Write', 'RetentionPolicy']);
  const wants = (tag: string) => booleanOf(requiredChild(logging, tag));
  return {
    version: analyticsVersion(logging, versions),
    read: wants('Read'),
    write: wants('Write'),
    delete: wants('Delete'),
    days: daysOf(requiredChild(logging, 'RetentionPolicy')),
  };
}

function readMetrics(metrics: XmlElement): Metrics {
  const parts = partsOf(metrics, ['Version', 'Enabled', 'IncludeAPIs', 'RetentionPolicy']);
  analyticsVersion(metrics, ['1.0']);
  const enabled = booleanOf(requiredChild(metrics, 'Enabled'));
  const apis = enabled ? requiredChild(metrics, 'IncludeAPIs') : parts.get('IncludeAPIs');
  const perApi = apis && booleanOf(apis);
  return { enabled, ...(enabled && { perApi }), days: daysOf(requiredChild(metrics, 'RetentionPolicy')) };
}

function analyticsVersion(parent: XmlElement, versions: readonly string[]): string {
  const element = requiredChild(parent, 'Version');
  const version = element.text.trim();
  if (!versions.includes(version)) throw invalidValue(element, 'There is no such version.');
  return version;
}

const DAYS_MAX = 365;

/** Undefined: for ever. */
function daysOf(policy: XmlElement, more: readonly string[] = []): number | undefined {
  const parts = partsOf(policy, ['Enabled', 'Days', ...more]);
  const enabled = booleanOf(requiredChild(policy, 'Enabled'));
  const element = enabled ? requiredChild(policy, 'Days') : parts.get('Days');
  const days = element ? integerOf(element) : DAYS_MAX;
  if (days < 1 || days > DAYS_MAX) {
    throw invalidNode(policy, `Retention days must be greater than 0 and less than or equal to ${DAYS_MAX} days.`);
  }
  return enabled ? days : undefined;
}

function readDeleteRetention(policy: XmlElement): boolean {
  const days = daysOf(policy, ['AllowPermanentDelete']);
  const permanent = childOf(policy, 'AllowPermanentDelete');
  return (permanent !== undefined && booleanOf(permanent)) || days !== undefined;
}

function readWebsite(website: XmlElement): boolean {
  partsOf(website, ['Enabled', 'IndexDocument', 'DefaultIndexDocumentPath', 'ErrorDocument404Path']);
  return booleanOf(requiredChild(website, 'Enabled'));
}

function readVersion(element: XmlElement): string {
  const version = element.text.trim();
  if (!VERSION.test(version)) throw invalidValue(element, 'It is not a version.');
  return version;
}

export function serviceStatsXml({ status, lastSync }: ServiceStats): string {
  const replication = `<Status>${status}</Status><LastSyncTime>${rfc1123(lastSync)}</LastSyncTime>`;
  return `<StorageServiceStats><GeoReplication>${replication}</GeoReplication></StorageServiceStats>`;
}

/** How far the copy is behind is asked at the copy. */
export const atSecondary = reader((request): void => {
  if (!request.secondary) throw invalidQuery('comp', 'stats', 'Ask at the secondary address of the account.');
});
