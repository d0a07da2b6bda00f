/** Contents of blobs and files in a seed: given in the seed itself, or as files. */
import { readdirSync, statSync } from 'node:fs';
import { extname, join, relative, resolve, sep } from 'node:path';
import type { ContentHeaders } from '../../services/common/content-headers.ts';
import type { SentContent } from '../../services/common/upload.ts';
import { bytesContent, fileContent } from '../file-content.ts';
import { readMetadata } from './seed-checks.ts';
import type { SeedNode } from './seed-node.ts';

const HEADERS = ['contentType', 'contentEncoding', 'contentLanguage', 'contentDisposition', 'cacheControl'] as const;
const SOURCES = ['text', 'base64', 'file'] as const;
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

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

export interface SeedSource {
  readonly length: number;
  open(offset: number, length: number): SentContent | Promise<SentContent>;
}

export interface SeedContent {
  readonly content: ContentHeaders;
  readonly metadata: readonly (readonly [name: string, value: string])[];
  readonly source: SeedSource;
}

/** A text alone is the content. `more`: settings that it has besides. */
export function readContent<const More extends string>(
  node: SeedNode,
  what: 'blob' | 'file',
  { folder, more = [] }: { readonly folder: string; readonly more?: readonly More[] },
): SeedContent & { readonly more: { readonly [Name in More]?: SeedNode } } {
  if (!node.isMap()) {
    const source = bytesSource(Buffer.from(node.text()));
    return { content: { contentType: 'text/plain; charset=utf-8' }, metadata: [], source, more: {} };
  }
  const fields: { readonly [Name in (typeof SOURCES)[number] | (typeof HEADERS)[number] | 'metadata']?: SeedNode } & {
    readonly [Name in More]?: SeedNode;
  } = node.fields([...SOURCES, ...HEADERS, 'metadata', ...more]);
  const given = SOURCES.filter((source) => fields[source] !== undefined);
  if (given.length !== 1) throw node.fault(`a ${what} has one of ${SOURCES.join(', ')}`);
  const headers = HEADERS.map((name) => [name, fields[name]?.headerText()] as const);
  const content: ContentHeaders = Object.fromEntries(headers.filter(([, value]) => value !== undefined));
  const metadata = readMetadata(fields.metadata);
  if (fields.file) {
    const file = resolve(folder, fields.file.text());
    const source = fileSource(fields.file, file);
    return { content: { contentType: contentTypeOf(file), ...content }, metadata, source, more: fields };
  }
  const bytes = fields.text ? Buffer.from(fields.text.text()) : readBase64(fields.base64!);
  return { content, metadata, source: bytesSource(bytes), more: fields };
}

function readBase64(node: SeedNode): Buffer {
  const text = node.text();
  if (!BASE64.test(text)) throw node.fault('it is not Base64');
  return Buffer.from(text, 'base64');
}

function bytesSource(bytes: Buffer): SeedSource {
  return { length: bytes.length, open: (offset, length) => bytesContent(bytes.subarray(offset, offset + length)) };
}

/**
 * Every file below the folder, by its path in the folder, but those that are listed under their name. A link to a file counts as the file;
 * one to a folder is left out, since it may lead back.
 */
export function readFolder(
  node: SeedNode,
  base: string,
  listed: readonly SeedNode[],
): (SeedContent & { readonly name: string })[] {
  const known = new Set(listed.map(({ name }) => name));
  const folder = resolve(base, node.text());
  let names: string[];
  try {
    // With types, because without them Node follows links to folders.
    const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
    names = entries.map(({ parentPath, name }) => relative(folder, join(parentPath, name)));
  } catch (error) {
    throw node.fault(`the folder ${folder} cannot be read (${(error as NodeJS.ErrnoException).code})`);
  }
  return names.sort().flatMap((name) => {
    const file = join(folder, name);
    const path = name.replaceAll(sep, '/');
    if (known.has(path) || !statSync(file, { throwIfNoEntry: false })?.isFile()) return [];
    return [
      { name: path, content: { contentType: contentTypeOf(file) }, metadata: [], source: fileSource(node, file) },
    ];
  });
}

function contentTypeOf(file: string): string | undefined {
  return CONTENT_TYPES[extname(file).toLowerCase()];
}

function fileSource(node: SeedNode, file: string): SeedSource {
  const stats = statSync(file, { throwIfNoEntry: false });
  if (!stats?.isFile()) throw node.fault(stats ? `${file} is not a file` : `there is no file ${file}`);
  return { length: stats.size, open: (offset, length) => fileContent(file, offset, length) };
}
