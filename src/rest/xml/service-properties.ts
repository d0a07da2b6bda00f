/** Service properties: XML to and from ServiceProperties; and service stats. */

import { formatRfc1123 } from '../../base/time.ts';
import { findChild, type XmlElement } from '../../base/xml.ts';
import type { DeleteRetention } from '../../rules/soft-delete.ts';
import type { ServiceName } from '../../services/common/names.ts';
import {
  type Logging,
  type Metrics,
  NO_LOGGING,
  NO_METRICS,
  type RequestedProperties,
  type ServiceProperties,
  type ServiceStats,
} from '../../services/common/service-properties.ts';
import { invalidQuery, invalidXml, reader } from '../params.ts';
import { VERSION } from '../request.ts';
import { corsRulesXml, parseCorsRules } from './cors-rules.ts';
import { protocolSettingsXml, switchesProtocolSetting } from './protocol-settings.ts';
import {
  childrenByName,
  invalidNode,
  invalidValue,
  parseBooleanElement,
  parseIntegerElement,
  requiredChild,
} from './xml-nodes.ts';

/** From this version on a retention policy has AllowPermanentDelete. */
const PERMANENT_DELETE_SINCE = '2020-02-10';

const NO_RETENTION: DeleteRetention = { allowsPermanentDelete: false };

/** Elements of all services, and those that some of them have besides. */
const COMMON = ['HourMetrics', 'MinuteMetrics', 'Cors'];
const OWN: Readonly<Record<ServiceName, readonly string[]>> = {
  blob: ['Logging', 'DefaultServiceVersion', 'DeleteRetentionPolicy', 'StaticWebsite'],
  queue: ['Logging'],
  table: ['Logging'],
  file: ['ProtocolSettings'],
};

export function servicePropertiesXml(
  properties: ServiceProperties,
  service: ServiceName,
  requestVersion: string,
): string {
  const { logging = NO_LOGGING, hourMetrics = NO_METRICS, minuteMetrics = NO_METRICS, cors = [] } = properties;
  return (
    `<StorageServiceProperties>${service === 'file' ? '' : loggingXml(logging)}<HourMetrics>${metricsXml(hourMetrics)}</HourMetrics>` +
    `<MinuteMetrics>${metricsXml(minuteMetrics)}</MinuteMetrics>${corsRulesXml(cors)}` +
    `${service === 'blob' ? blobPropertiesXml(properties, requestVersion) : ''}` +
    `${service === 'file' ? protocolSettingsXml(requestVersion) : ''}</StorageServiceProperties>`
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

function blobPropertiesXml(
  { defaultServiceVersion, deleteRetention = NO_RETENTION }: ServiceProperties,
  requestVersion: string,
): string {
  const { days, allowsPermanentDelete } = deleteRetention;
  const showsPermanent = requestVersion === '' || requestVersion >= PERMANENT_DELETE_SINCE;
  return (
    `<DeleteRetentionPolicy><Enabled>${days !== undefined}</Enabled>` +
    `${showsPermanent ? `<AllowPermanentDelete>${allowsPermanentDelete}</AllowPermanentDelete>` : ''}` +
    `${days === undefined ? '' : `<Days>${days}</Days>`}</DeleteRetentionPolicy>` +
    '<StaticWebsite><Enabled>false</Enabled></StaticWebsite>' +
    (defaultServiceVersion ? `<DefaultServiceVersion>${defaultServiceVersion}</DefaultServiceVersion>` : '')
  );
}

export function parseServiceProperties(root: XmlElement | undefined, service: ServiceName): RequestedProperties {
  if (!root) throw invalidXml(1, 1, 'There is no document.');
  if (root.children.length === 0) throw invalidNode(root, 'There is no setting.');
  const parts = childrenByName(root, [...COMMON, ...OWN[service]]);
  const parsePart = <Value>(name: string, parse: (part: XmlElement) => Value): Value | undefined => {
    const part = parts.get(name);
    return part && parse(part);
  };
  return {
    logging: parsePart('Logging', (part) => parseLogging(part, service === 'table' ? ['1.0'] : ['1.0', '2.0'])),
    hourMetrics: parsePart('HourMetrics', parseMetrics),
    minuteMetrics: parsePart('MinuteMetrics', parseMetrics),
    cors: parsePart('Cors', parseCorsRules),
    defaultServiceVersion: parsePart('DefaultServiceVersion', parseServiceVersion),
    deleteRetention: parsePart('DeleteRetentionPolicy', parseDeleteRetention),
    staticWebsite: parsePart('StaticWebsite', parseWebsite),
    protocolSettings: parsePart('ProtocolSettings', switchesProtocolSetting),
  };
}

function parseLogging(logging: XmlElement, versions: readonly string[]): Logging {
  childrenByName(logging, ['Version', 'Delete', 'Read', 'Write', 'RetentionPolicy']);
  const flag = (tag: string) => parseBooleanElement(requiredChild(logging, tag));
  return {
    version: parseAnalyticsVersion(logging, versions),
    read: flag('Read'),
    write: flag('Write'),
    delete: flag('Delete'),
    days: parseRetentionDays(requiredChild(logging, 'RetentionPolicy')),
  };
}

function parseMetrics(metrics: XmlElement): Metrics {
  const parts = childrenByName(metrics, ['Version', 'Enabled', 'IncludeAPIs', 'RetentionPolicy']);
  parseAnalyticsVersion(metrics, ['1.0']);
  const enabled = parseBooleanElement(requiredChild(metrics, 'Enabled'));
  const apis = enabled ? requiredChild(metrics, 'IncludeAPIs') : parts.get('IncludeAPIs');
  const perApi = apis && parseBooleanElement(apis);
  return { enabled, ...(enabled && { perApi }), days: parseRetentionDays(requiredChild(metrics, 'RetentionPolicy')) };
}

function parseAnalyticsVersion(parent: XmlElement, versions: readonly string[]): string {
  const element = requiredChild(parent, 'Version');
  const version = element.text.trim();
  if (!versions.includes(version)) throw invalidValue(element, 'There is no such version.');
  return version;
}

const DAYS_MAX = 365;

/** Undefined: for ever. */
function parseRetentionDays(policy: XmlElement, more: readonly string[] = []): number | undefined {
  const parts = childrenByName(policy, ['Enabled', 'Days', ...more]);
  const enabled = parseBooleanElement(requiredChild(policy, 'Enabled'));
  const element = enabled ? requiredChild(policy, 'Days') : parts.get('Days');
  const days = element ? parseIntegerElement(element) : DAYS_MAX;
  if (days < 1 || days > DAYS_MAX) {
    throw invalidNode(policy, `Retention days must be greater than 0 and less than or equal to ${DAYS_MAX} days.`);
  }
  return enabled ? days : undefined;
}

function parseDeleteRetention(policy: XmlElement): DeleteRetention {
  const days = parseRetentionDays(policy, ['AllowPermanentDelete']);
  const permanent = findChild(policy, 'AllowPermanentDelete');
  return { days, allowsPermanentDelete: permanent !== undefined && parseBooleanElement(permanent) };
}

function parseWebsite(website: XmlElement): boolean {
  childrenByName(website, ['Enabled', 'IndexDocument', 'DefaultIndexDocumentPath', 'ErrorDocument404Path']);
  return parseBooleanElement(requiredChild(website, 'Enabled'));
}

function parseServiceVersion(element: XmlElement): string {
  const version = element.text.trim();
  if (!VERSION.test(version)) throw invalidValue(element, 'It is not a version.');
  return version;
}

export function serviceStatsXml({ status, lastSync }: ServiceStats): string {
  const replication = `<Status>${status}</Status><LastSyncTime>${formatRfc1123(lastSync)}</LastSyncTime>`;
  return `<StorageServiceStats><GeoReplication>${replication}</GeoReplication></StorageServiceStats>`;
}

/** The replication lag is asked at the secondary address. */
export const requireSecondary = reader((request): void => {
  if (!request.secondary) throw invalidQuery('comp', 'stats', 'Ask at the secondary address of the account.');
});
