/** What a folder of Azurite may hold, one row for each kind: those with `take` are imported, the others are counted. */
import type { Storage } from '../../services/common/storage.ts';
import type { FailureReport } from './attempts.ts';
import { isAlive, isLeased, propertyOf } from './azurite-documents.ts';
import type { AzuriteFolder, DatabaseName } from './azurite-folder.ts';
import type { NamedParent } from './clashes.ts';
import type { LokiDocument } from './loki-file.ts';
import { takeBlobs, takeContainers, takeUncommittedBlocks } from './take-blobs.ts';
import { takeAppendBlobs, takePageBlobs } from './take-in-place.ts';
import { takeMessages, takeQueues } from './take-queues.ts';
import { takeSnapshots } from './take-snapshots.ts';
import { isEntityCollection, takeEntities, takeTables } from './take-tables.ts';

export interface ImportTarget extends FailureReport {
  readonly folder: AzuriteFolder;
  /** The account of a document. */
  storage(account: string): Storage;
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
  readonly parent?: (document: LokiDocument) => NamedParent;
  /** Undefined: counted as not taken. Calls `failed` for each document that cannot be taken. */
  readonly take?: (documents: readonly ImportedDocument[], target: ImportTarget) => Promise<void>;
}

const named = (name: string) => (collection: string) => collection === `$${name}_COLLECTION$`;
const blobs = { database: 'blob', isIn: named('BLOBS') } as const;
const isState = (document: LokiDocument) => document.snapshot !== undefined && document.snapshot !== '';
const isOfType = (type: string) => (document: LokiDocument) => propertyOf(document, 'blobType') === type;
const isBlob = (type: string) => (document: LokiDocument) =>
  document.isCommitted === true && !isState(document) && isOfType(type)(document);
const isBlockBlob = isOfType('BlockBlob');

const parentOf = (what: NamedParent['what']) => (document: LokiDocument) => ({
  what,
  account: String(document.accountName ?? document.account),
  name: String(document.name ?? document.table),
});

/** In the order in which they are imported: what is in a container, a queue or a table comes after it, and a blob after its snapshots. */
export const importKinds: readonly ImportKind[] = [
  {
    what: 'containers',
    database: 'blob',
    isIn: named('CONTAINERS'),
    parent: parentOf('container'),
    take: takeContainers,
  },
  {
    what: 'snapshots of block blobs',
    ...blobs,
    when: (document) => isState(document) && isBlockBlob(document),
    take: takeSnapshots,
  },
  { what: 'block blobs', ...blobs, when: isBlob('BlockBlob'), take: takeBlobs },
  { what: 'uncommitted blocks', database: 'blob', isIn: named('BLOCKS'), take: takeUncommittedBlocks },
  { what: 'append blobs', ...blobs, when: isBlob('AppendBlob'), take: takeAppendBlobs },
  { what: 'page blobs', ...blobs, when: isBlob('PageBlob'), take: takePageBlobs },
  {
    what: 'snapshots of append and page blobs',
    ...blobs,
    when: (document) => isState(document) && !isBlockBlob(document),
  },
  { what: 'leases of blobs, which end', ...blobs, when: isLeased },
  { what: 'leases of containers, which end', database: 'blob', isIn: named('CONTAINERS'), when: isLeased },
  { what: 'queues', database: 'queue', isIn: named('QUEUES'), parent: parentOf('queue'), take: takeQueues },
  { what: 'messages', database: 'queue', isIn: named('MESSAGES'), when: isAlive, take: takeMessages },
  {
    what: 'messages that have expired',
    database: 'queue',
    isIn: named('MESSAGES'),
    when: (...args) => !isAlive(...args),
  },
  { what: 'tables', database: 'table', isIn: named('TABLES'), parent: parentOf('table'), take: takeTables },
  { what: 'entities', database: 'table', isIn: isEntityCollection, take: takeEntities },
  ...(['blob', 'queue', 'table'] as const).map((database) => ({
    what: `properties of the ${database} service`,
    database,
    isIn: named('SERVICES'),
  })),
];
