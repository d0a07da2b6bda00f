/** What a folder of Azurite may hold, one row for each kind: those with `take` are imported, the others are counted. */
import type { Storage } from '../../services/common/storage.ts';
import type { FailureReport } from './attempts.ts';
import { hasFiniteLease, hasInfiniteLease, isAlive, propertyOf } from './azurite-documents.ts';
import type { AzuriteFolder, DatabaseName } from './azurite-folder.ts';
import type { NamedParent } from './clashes.ts';
import type { LokiDocument } from './loki-file.ts';
import { takeBlobs, takeContainers, takeUncommittedBlocks } from './take-blobs.ts';
import { takeInPlace } from './take-in-place.ts';
import { takeLeases } from './take-leases.ts';
import { takeMessages, takeQueues } from './take-queues.ts';
import { takeSnapshots } from './take-snapshots.ts';
import { isEntityCollection, takeEntities, takeTables } from './take-tables.ts';

export interface ImportTarget extends FailureReport {
  readonly folder: AzuriteFolder;
  /** The account of a document. */
  storage(account: string): Storage;
  /** By path: the states in which append and page blobs are now, until they are what they were in Azurite. */
  readonly lastStates: Map<string, LokiDocument>;
}

export interface ImportedDocument {
  readonly collection: string;
  readonly document: LokiDocument;
}

export interface ImportKind {
  readonly what: string;
  readonly database: DatabaseName;
  readonly isIn: (collection: string) => boolean;
  readonly when?: (document: LokiDocument, now: bigint) => boolean;
  /** Of a container, a queue or a table: its name, which the destination must not have. */
  readonly parent?: (document: LokiDocument) => NamedParent | undefined;
  /** No longer in force, as a message that has expired: not taken, and not missed. */
  readonly isOver?: true;
  /** Undefined: counted as not taken. Calls `failed` for each document that cannot be taken. */
  readonly take?: (documents: readonly ImportedDocument[], target: ImportTarget) => Promise<void>;
}

const named = (name: string) => (collection: string) => collection === `$${name}_COLLECTION$`;
const containers = { database: 'blob', isIn: named('CONTAINERS') } as const;
const blobs = { database: 'blob', isIn: named('BLOBS') } as const;
const isState = (document: LokiDocument) => document.snapshot !== undefined && document.snapshot !== '';
const isBlob = (type: string) => (document: LokiDocument) =>
  document.isCommitted === true && !isState(document) && propertyOf(document, 'blobType') === type;

/** Undefined: the document is damaged. `take` reports it. */
const parentOf = (what: NamedParent['what']) => (document: LokiDocument) => {
  const [account, name] = [document.accountName ?? document.account, document.name ?? document.table];
  return typeof account === 'string' && typeof name === 'string' ? { what, account, name } : undefined;
};

/** In the order in which they are imported: what is in a container, a queue or a table comes after it, and a blob after its snapshots. */
export const importKinds: readonly ImportKind[] = [
  { what: 'containers', ...containers, parent: parentOf('container'), take: takeContainers },
  { what: 'snapshots', ...blobs, when: isState, take: takeSnapshots },
  { what: 'block blobs', ...blobs, when: isBlob('BlockBlob'), take: takeBlobs },
  { what: 'uncommitted blocks', database: 'blob', isIn: named('BLOCKS'), take: takeUncommittedBlocks },
  { what: 'append blobs', ...blobs, when: isBlob('AppendBlob'), take: takeInPlace },
  { what: 'page blobs', ...blobs, when: isBlob('PageBlob'), take: takeInPlace },
  { what: 'infinite leases of blobs', ...blobs, when: hasInfiniteLease, take: takeLeases },
  { what: 'infinite leases of containers', ...containers, when: hasInfiniteLease, take: takeLeases },
  { what: 'other leases of blobs, which have ended', ...blobs, when: hasFiniteLease, isOver: true },
  { what: 'other leases of containers, which have ended', ...containers, when: hasFiniteLease, isOver: true },
  { what: 'queues', database: 'queue', isIn: named('QUEUES'), parent: parentOf('queue'), take: takeQueues },
  { what: 'messages', database: 'queue', isIn: named('MESSAGES'), when: isAlive, take: takeMessages },
  {
    what: 'messages that have expired',
    database: 'queue',
    isIn: named('MESSAGES'),
    when: (...args) => !isAlive(...args),
    isOver: true,
  },
  { what: 'tables', database: 'table', isIn: named('TABLES'), parent: parentOf('table'), take: takeTables },
  { what: 'entities', database: 'table', isIn: isEntityCollection, take: takeEntities },
  ...(['blob', 'queue', 'table'] as const).map((database) => ({
    what: `properties of the ${database} service`,
    database,
    isIn: named('SERVICES'),
  })),
];
