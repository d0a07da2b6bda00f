/** Containers of a seed, with their blobs: given in the seed itself, or as files. */
import { readdirSync, statSync } from 'node:fs';
import { extname, join, resolve, sep } from 'node:path';
import type { Tier } from '../../rules/tiers.ts';
import { createContainer } from '../../services/blob/containers.ts';
import { precheckPutBlob, putBlob } from '../../services/blob/put-blob.ts';
import type { ContentHeaders } from '../../services/blob/rows.ts';
import type { SentContent } from '../../services/common/upload.ts';
import { bytesContent, fileContent } from '../file-content.ts';
import { formatTagsHeader } from '../tags-header.ts';
import { checkedName, readMetadata, readTags } from './seed-checks.ts';
import type { SeedNode } from './seed-node.ts';
import type { SeedScope } from './seed-step.ts';

const HEADERS = ['contentType', 'contentEncoding', 'contentLanguage', 'contentDisposition', 'cacheControl'] as const;
const TIERS = ['Hot', 'Cool', 'Cold', 'Archive'] as const satisfies Tier[];
const SOURCES = ['text', 'base64', 'file'] as const;
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
/** The limit of Put Blob. */
const BLOB_BYTES_MAX = 5_000 * 1024 * 1024;

/** Of files without a contentType; the others are application/octet-stream. */
const CONTENT_TYPES: Readonly<Record<string, string>> = {
  '.avif': 'image/avif',
  '.css': 'text/css',
  '.csv': 'text/csv',
  '.gif': 'image/gif',
  '.htm': 'text/html',
  '.html': 'text/html',
  '.ico': 'image/x-icon',
  '.jpeg': 'image/jpeg',
  '.jpg': 'image/jpeg',
  '.js': 'text/javascript',
  '.json': 'application/json',
  '.md': 'text/markdown',
  '.mjs': 'text/javascript',
  '.mp3': 'audio/mpeg',
  '.mp4': 'video/mp4',
  '.pdf': 'application/pdf',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain',
  '.wasm': 'application/wasm',
  '.webp': 'image/webp',
  '.xml': 'application/xml',
  '.zip': 'application/zip',
};

export function addContainer(node: SeedNode, scope: SeedScope): void {
  const { access, metadata, blobs, folder } = node.fields(['access', 'metadata', 'blobs', 'folder']);
  const container = checkedName(node, 'container');
  const input = { container, metadata: readMetadata(metadata), access: access?.choice(['blob', 'container']) };
  scope.steps.parents.push({
    node,
    account: scope.account,
    existsCode: 'ContainerAlreadyExists',
    run: (storage) => createContainer(storage, input),
  });
  const listed = blobs?.entries() ?? [];
  for (const blob of listed)
    addBlob(blob, { container, blob: checkedName(blob, 'blob') }, readBlob(blob, scope), scope);
  if (folder) addFolder(folder, container, new Set(listed.map(({ name }) => name)), scope);
}

interface SeedBlob {
  readonly content: ContentHeaders;
  readonly metadata?: readonly (readonly [name: string, value: string])[];
  /** The header x-ms-tags. */
  readonly tags?: string | undefined;
  readonly tier?: string | undefined;
  open(): SentContent | Promise<SentContent>;
}

function addBlob(node: SeedNode, name: { container: string; blob: string }, seeded: SeedBlob, scope: SeedScope): void {
  const { metadata = [], open, ...described } = seeded;
  const input = { ...name, ...described, metadata, conditions: { ifNoneMatch: '*' as const }, leaseId: undefined };
  scope.steps.children.push({
    node,
    account: scope.account,
    existsCode: 'BlobAlreadyExists',
    async run(storage) {
      // Before the bytes are read: at most starts, every blob is there.
      await precheckPutBlob(storage, input);
      await putBlob(storage, { ...input, body: await open() });
    },
  });
}

/** A text alone is the content of the blob. */
function readBlob(node: SeedNode, { folder }: SeedScope): SeedBlob {
  if (!node.isMap()) {
    const bytes = Buffer.from(node.text());
    return { content: { contentType: 'text/plain; charset=utf-8' }, open: () => bytesContent(bytes) };
  }
  const fields = node.fields([...SOURCES, ...HEADERS, 'metadata', 'tags', 'tier']);
  const given = SOURCES.filter((source) => fields[source] !== undefined);
  if (given.length !== 1) throw node.fault(`a blob has one of ${SOURCES.join(', ')}`);
  const headers = HEADERS.map((name) => [name, fields[name]?.headerText()] as const);
  const content: ContentHeaders = Object.fromEntries(headers.filter(([, value]) => value !== undefined));
  const described = {
    metadata: readMetadata(fields.metadata),
    tags: fields.tags && formatTagsHeader(readTags(fields.tags)),
    tier: fields.tier?.choice(TIERS),
  };
  if (fields.file) {
    const file = resolve(folder, fields.file.text());
    return {
      ...described,
      content: { contentType: contentTypeOf(file), ...content },
      open: openFile(fields.file, file),
    };
  }
  const bytes = fields.text ? Buffer.from(fields.text.text()) : readBase64(fields.base64!);
  return { ...described, content, open: () => bytesContent(bytes) };
}

function readBase64(node: SeedNode): Buffer {
  const text = node.text();
  if (!BASE64.test(text)) throw node.fault('it is not Base64');
  return Buffer.from(text, 'base64');
}

/** Every file below the folder becomes a blob, named by its path in the folder, unless a blob of that name is listed. */
function addFolder(node: SeedNode, container: string, listed: ReadonlySet<string>, scope: SeedScope): void {
  const folder = resolve(scope.folder, node.text());
  let names: string[];
  try {
    names = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  } catch (error) {
    throw node.fault(`the folder ${folder} cannot be read (${(error as NodeJS.ErrnoException).code})`);
  }
  for (const name of names.sort()) {
    const file = join(folder, name);
    const blob = name.replaceAll(sep, '/');
    if (listed.has(blob) || !statSync(file, { throwIfNoEntry: false })?.isFile()) continue;
    const seeded = { content: { contentType: contentTypeOf(file) }, open: openFile(node, file) };
    addBlob(node, { container, blob }, seeded, scope);
  }
}

function contentTypeOf(file: string): string | undefined {
  return CONTENT_TYPES[extname(file).toLowerCase()];
}

function openFile(node: SeedNode, file: string): () => Promise<SentContent> {
  const stats = statSync(file, { throwIfNoEntry: false });
  if (!stats?.isFile()) throw node.fault(stats ? `${file} is not a file` : `there is no file ${file}`);
  if (stats.size > BLOB_BYTES_MAX) throw node.fault(`${file} has more than 5,000 MiB: upload it in blocks`);
  return () => fileContent(file, 0, stats.size);
}
