/** Valid names of containers and blobs. */
export type NameFault = 'InvalidResourceName' | 'InvalidUri' | 'OutOfRangeInput';

/** The container of the service's own logs. */
export const LOGS_CONTAINER = '$logs';
const SYSTEM_CONTAINERS = new Set(['$root', '$web', LOGS_CONTAINER]);
const CONTAINER_NAME = /^[a-z0-9]+(?:-[a-z0-9]+)*$/;
const CONTAINER_NAME_MIN = 3;
const CONTAINER_NAME_MAX = 63;
/** In UTF-16 units, as .NET counts. */
export const BLOB_NAME_MAX = 1024;
const BLOB_NAME_SEGMENTS_MAX = 254;

/** The length is checked first: a short name with invalid characters is out of range. */
export function containerNameFault(name: string): NameFault | undefined {
  if (name.length < CONTAINER_NAME_MIN || name.length > CONTAINER_NAME_MAX) return 'OutOfRangeInput';
  if (SYSTEM_CONTAINERS.has(name) || CONTAINER_NAME.test(name)) return undefined;
  return 'InvalidResourceName';
}

/** Any text with few enough segments is valid. */
export function blobNameFault(name: string): NameFault | undefined {
  if (name.length < 1 || name.length > BLOB_NAME_MAX) return 'OutOfRangeInput';
  if (name.length < BLOB_NAME_SEGMENTS_MAX) return undefined;
  return name.split('/').length > BLOB_NAME_SEGMENTS_MAX ? 'InvalidUri' : undefined;
}
