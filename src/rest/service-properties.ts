/** The properties of a service as XML, in and out. */

import { rfc1123 } from '../base/time.ts';
import { childOf, type XmlElement } from '../base/xml.ts';
import type { ServiceName } from '../services/names.ts';
import type { ServiceProperties, WantedProperties } from '../services/service-properties.ts';
import type { ServiceStats } from '../services/service-stats.ts';
import { corsRulesXml, readCorsRules } from './cors-rules.ts';
import { invalidQuery, invalidXml, reader } from './params.ts';
import { VERSION } from './request.ts';
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
  const { loggingVersion = '1.0', cors = [] } = properties;
  const retention = '<RetentionPolicy><Enabled>false</Enabled></RetentionPolicy>';
  const metrics = `<Version>1.0</Version><Enabled>false</Enabled>${retention}`;
  return (
    `<StorageServiceProperties><Logging><Version>${loggingVersion}</Version><Read>false</Read><Write>false</Write>` +
    `<Delete>false</Delete>${retention}</Logging><HourMetrics>${metrics}</HourMetrics>` +
    `<MinuteMetrics>${metrics}</MinuteMetrics>${corsRulesXml(cors)}` +
    `${service === 'blob' ? ofBlobs(properties, requestVersion) : ''}</StorageServiceProperties>`
  );
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
    logging: read('Logging', readLogging),
    hourMetrics: read('HourMetrics', readMetrics),
    minuteMetrics: read('MinuteMetrics', readMetrics),
    cors: read('Cors', readCorsRules),
    defaultServiceVersion: read('DefaultServiceVersion', readVersion),
    deleteRetention: read('DeleteRetentionPolicy', readDeleteRetention),
    staticWebsite: read('StaticWebsite', readWebsite),
  };
}

/** To keep what is never gathered is something switched on, too. */
function readLogging(logging: XmlElement): NonNullable<WantedProperties['logging']> {
  partsOf(logging, ['Version', 'Delete', 'Read', 'Write', 'RetentionPolicy']);
  const version = analyticsVersion(logging, ['1.0', '2.0']);
  const logged = ['Read', 'Write', 'Delete'].map((tag) => booleanOf(requiredChild(logging, tag)));
  const kept = isKept(requiredChild(logging, 'RetentionPolicy'));
  return { version, on: logged.includes(true) || kept };
}

function readMetrics(metrics: XmlElement): boolean {
  const parts = partsOf(metrics, ['Version', 'Enabled', 'IncludeAPIs', 'RetentionPolicy']);
  analyticsVersion(metrics, ['1.0']);
  const enabled = booleanOf(requiredChild(metrics, 'Enabled'));
  const withApis = enabled ? requiredChild(metrics, 'IncludeAPIs') : parts.get('IncludeAPIs');
  if (withApis) booleanOf(withApis);
  const kept = isKept(requiredChild(metrics, 'RetentionPolicy'));
  return enabled || kept;
}

function analyticsVersion(parent: XmlElement, versions: readonly string[]): string {
  const element = requiredChild(parent, 'Version');
  const version = element.text.trim();
  if (!versions.includes(version)) throw invalidValue(element, 'There is no such version.');
  return version;
}

const DAYS_MAX = 365;

function isKept(policy: XmlElement, more: readonly string[] = []): boolean {
  const parts = partsOf(policy, ['Enabled', 'Days', ...more]);
  const enabled = booleanOf(requiredChild(policy, 'Enabled'));
  const element = enabled ? requiredChild(policy, 'Days') : parts.get('Days');
  const days = element ? integerOf(element) : DAYS_MAX;
  if (days < 1 || days > DAYS_MAX) {
    throw invalidNode(policy, `Retention days must be greater than 0 and less than or equal to ${DAYS_MAX} days.`);
  }
  return enabled;
}

function readDeleteRetention(policy: XmlElement): boolean {
  const kept = isKept(policy, ['AllowPermanentDelete']);
  const permanent = childOf(policy, 'AllowPermanentDelete');
  return (permanent !== undefined && booleanOf(permanent)) || kept;
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
