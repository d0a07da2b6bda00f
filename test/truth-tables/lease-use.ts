/** Access to leased resources: use by state, for blobs and containers, with the operations that represent each use. */
import { type After, type Id, type Resource, type Step, situations } from './lease-actions.ts';

export type Use = 'read' | 'write';
export type UseVerdict = 'proceed' | 'LeaseIdMissing' | 'LeaseIdMismatch' | 'LeaseNotPresent' | 'LeaseLost';

export interface LeaseUseCell {
  title: string;
  resource: Resource;
  use: Use;
  leaseId?: Id;
  steps: readonly Step[];
  verdict: UseVerdict;
  /** 412 with this code; absent where the operation succeeds with its own status. */
  code?: string;
  /** The lease after the operation, unless that deleted the resource. */
  after: After;
}

/** Each operation that uses a blob or a container, and the status of its success. */
export interface LeaseUseOperation {
  resource: Resource;
  use: Use;
  operation: string;
  status: number;
  /** Of the blob; undefined: a block blob. */
  type?: 'append' | 'page';
}

export const leaseUseOperations: LeaseUseOperation[] = [
  { resource: 'blob', use: 'write', operation: 'Put Blob', status: 201 },
  { resource: 'blob', use: 'write', operation: 'Set Blob Metadata', status: 200 },
  { resource: 'blob', use: 'write', operation: 'Set Blob Properties', status: 200 },
  { resource: 'blob', use: 'write', operation: 'Delete Blob', status: 202 },
  { resource: 'blob', use: 'read', operation: 'Get Blob', status: 200 },
  { resource: 'blob', use: 'read', operation: 'Get Blob Properties', status: 200 },
  { resource: 'blob', use: 'read', operation: 'Get Blob Metadata', status: 200 },
  { resource: 'blob', use: 'write', operation: 'Put Blob (append blob)', status: 201, type: 'append' },
  { resource: 'blob', use: 'write', operation: 'Append Block', status: 201, type: 'append' },
  { resource: 'blob', use: 'write', operation: 'Append Block From URL', status: 201, type: 'append' },
  { resource: 'blob', use: 'write', operation: 'Append Blob Seal', status: 200, type: 'append' },
  { resource: 'blob', use: 'write', operation: 'Put Blob (page blob)', status: 201, type: 'page' },
  { resource: 'blob', use: 'write', operation: 'Put Page', status: 201, type: 'page' },
  { resource: 'blob', use: 'write', operation: 'Clear Page', status: 201, type: 'page' },
  { resource: 'blob', use: 'write', operation: 'Put Page From URL', status: 201, type: 'page' },
  { resource: 'blob', use: 'write', operation: 'Set Blob Properties (resize)', status: 200, type: 'page' },
  { resource: 'blob', use: 'write', operation: 'Set Blob Properties (sequence number)', status: 200, type: 'page' },
  { resource: 'blob', use: 'read', operation: 'Get Page Ranges', status: 200, type: 'page' },
  { resource: 'container', use: 'write', operation: 'Delete Container', status: 202 },
  { resource: 'container', use: 'read', operation: 'Get Container Properties', status: 200 },
  { resource: 'container', use: 'read', operation: 'Get Container Metadata', status: 200 },
  { resource: 'container', use: 'read', operation: 'Get Container ACL', status: 200 },
  { resource: 'container', use: 'read', operation: 'Set Container Metadata', status: 200 },
  { resource: 'container', use: 'read', operation: 'Set Container ACL', status: 200 },
];

/** A lease id for a blob that does not exist: Put Blob only, every other operation answers 404. */
export const missingBlobCells: { title: string; leaseId?: Id; verdict: UseVerdict; status: number; code?: string }[] = [
  { title: 'Put Blob without a lease id makes the blob', verdict: 'proceed', status: 201 },
  {
    title: 'Put Blob with a lease id needs the blob',
    leaseId: 'A',
    verdict: 'LeaseNotPresent',
    status: 412,
    code: 'LeaseNotPresentWithBlobOperation',
  },
];

const states = ['available', 'leased', 'breaking', 'broken', 'expired'] as const;

/** 'forgets': the operation succeeds, and removes the lease of a blob. */
type Cell = UseVerdict | 'forgets';

// biome-ignore format: a table
const rows: [use: Use, leaseId: Id | undefined, ...cells: [Cell, Cell, Cell, Cell, Cell]][] = [
  //                    available          leased(A)          breaking(A)        broken(A)    expired(A)
  ['write', 'A',       'LeaseNotPresent', 'proceed',         'proceed',         'LeaseLost', 'LeaseLost'],
  ['write', 'B',       'LeaseNotPresent', 'LeaseIdMismatch', 'LeaseIdMismatch', 'LeaseLost', 'LeaseLost'],
  ['write', undefined, 'proceed',         'LeaseIdMissing',  'LeaseIdMissing',  'forgets',   'forgets'],
  ['read',  'A',       'LeaseNotPresent', 'proceed',         'proceed',         'LeaseLost', 'LeaseLost'],
  ['read',  'B',       'LeaseNotPresent', 'LeaseIdMismatch', 'LeaseIdMismatch', 'LeaseLost', 'LeaseLost'],
  ['read',  undefined, 'proceed',         'proceed',         'proceed',         'proceed',   'proceed'],
];

const codes = {
  blob: {
    LeaseIdMissing: 'LeaseIdMissing',
    LeaseIdMismatch: 'LeaseIdMismatchWithBlobOperation',
    LeaseNotPresent: 'LeaseNotPresentWithBlobOperation',
    LeaseLost: 'LeaseLost',
  },
  container: {
    LeaseIdMissing: 'LeaseIdMissing',
    LeaseIdMismatch: 'LeaseIdMismatchWithContainerOperation',
    LeaseNotPresent: 'LeaseNotPresentWithContainerOperation',
    LeaseLost: 'LeaseLost',
  },
} as const;

export const leaseUseCells: LeaseUseCell[] = (['blob', 'container'] as const).flatMap((resource) =>
  rows.flatMap(([use, leaseId, ...cells]) =>
    states.map((name, at) => {
      const found = cells[at]!;
      const verdict = found === 'forgets' ? 'proceed' : found;
      const after: After = found === 'forgets' && resource === 'blob' ? { state: 'available' } : situations[name].after;
      return {
        title: `${use} ${leaseId === undefined ? 'without an id' : `with ${leaseId}`} when the ${resource} is ${name}`,
        resource,
        use,
        ...(leaseId === undefined ? {} : { leaseId }),
        steps: situations[name].steps,
        verdict,
        ...(verdict === 'proceed' ? {} : { code: codes[resource][verdict] }),
        after,
      };
    }),
  ),
);
