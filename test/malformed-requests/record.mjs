/**
 * node test/malformed-requests/record.mjs [blob|file]: records corpus.jsonl or file-corpus.jsonl from the end-to-end tests, one request of
 * each shape.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));
const recorder = new URL('recorder.mjs', import.meta.url).href;
/** Headers that signing adds again, and headers without meaning for a request. */
const LEFT_OUT =
  /^(?:host|authorization|x-ms-date|date|connection|user-agent|accept|accept-encoding|accept-language|keep-alive|x-ms-client-request-id|traceparent|content-length|transfer-encoding|expect)$/;
const SERVICES = {
  blob: { tests: ['test/end-to-end'], corpus: 'corpus.jsonl', isOther: /[?&]restype=(?:share|directory)\b/ },
  file: {
    tests: ['file', 'lease-file', 'copy-file'].map((name) => `test/end-to-end/${name}`),
    corpus: 'file-corpus.jsonl',
    isOther: /[?&]restype=container\b|\/\$batch|[?&]comp=(?:block|page|appendblock|tags|tier)\b/,
  },
};
const { tests, corpus: corpusFile, isOther } = SERVICES[process.argv[2] === 'file' ? 'file' : 'blob'];
const GUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/gi;
const GUIDS = ['a', 'b', 'c'].map((digit) => `${digit.repeat(8)}-0000-4000-8000-00000000000${digit}`);
const BODY_BYTES_MAX = 1_024;
const ODD_NAME_CHARACTERS_MAX = 100;
/** A shared access signature is made anew as well. */
const NOT_KEPT = /^(?:timeout|sig|sv|sp|se|st|sr|ss|srt|spr|sip|si|sdd|ses)=/;

const folder = mkdtempSync(join(tmpdir(), 'holdfast-recording-'));
try {
  const file = join(folder, 'requests');
  const options = `${process.env.NODE_OPTIONS ?? ''} --import ${recorder}`;
  spawnSync(process.execPath, [join(root, 'node_modules/vitest/vitest.mjs'), 'run', ...tests], {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, NODE_OPTIONS: options, HOLDFAST_RECORDING: file },
  });
  const lines = readFileSync(file, 'utf8').split('\n').filter(Boolean);
  /** @type {Map<string, unknown>} */
  const shapes = new Map();
  for (const line of lines) {
    const request = condensed(JSON.parse(line));
    if (request && !shapes.has(request.shape)) shapes.set(request.shape, request.kept);
  }
  const corpus = [...shapes].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, kept]) => JSON.stringify(kept));
  writeFileSync(new URL(corpusFile, import.meta.url), `${corpus.join('\n')}\n`);
  console.log(`${lines.length} requests, ${corpus.length} shapes`);
} finally {
  rmSync(folder, { recursive: true, force: true });
}

/** @param {{ method: string, url: string, rawHeaders: string[], body: string, bytes: number }} request */
function condensed({ method, url, rawHeaders, body, bytes }) {
  const path = /^\/devstoreaccount1(\/[^?]*|)(?:\?(.*))?$/s.exec(url);
  if (!path || isOther.test(url)) return undefined;
  const names = rawHeaders.filter((_, at) => at % 2 === 0).map((header) => header.toLowerCase());
  if (corpusFile !== 'corpus.jsonl' && names.includes('x-ms-blob-type')) return undefined;
  const [, container = '', blob] = /^\/([^/]*)(\/.*)?$/s.exec(path[1] || '/') ?? [];
  // Containers are made for each test: the play has some of its own. Names that are plain say nothing either.
  const place = container === '' ? '/' : `/${/^[a-z0-9-]+$/.test(container) ? '{container}' : container}`;
  const name = blob === undefined || /^\/[\w.-]{1,40}$/.test(blob) ? blob && '/{blob}' : blob;
  const isOdd = name !== undefined && name !== '/{blob}';
  if (isOdd && name.length > ODD_NAME_CHARACTERS_MAX) return undefined;
  const query = (path[2] ?? '')
    .split('&')
    .filter((part) => part !== '' && !NOT_KEPT.test(part))
    .map(withFewGuids);
  /** @type {string[][]} */
  const headers = [];
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const header = rawHeaders[at] ?? '';
    if (!LEFT_OUT.test(header.toLowerCase())) headers.push([header, keptValue(header, rawHeaders[at + 1] ?? '')]);
  }
  const content = Buffer.from(body, 'base64').subarray(0, BODY_BYTES_MAX);
  const text = content.toString('utf8');
  const isText = Buffer.from(text).equals(content) && /^[\x20-\x7e\s]*$/.test(text);
  const kept = {
    method,
    path: `${place}${name ?? ''}${query.length > 0 ? `?${query.join('&')}` : ''}`,
    headers,
    body: isText ? text : undefined,
    base64: isText ? undefined : content.toString('base64'),
  };
  const shape = [
    method,
    `${place}${isOdd ? '/odd' : (name ?? '')}`,
    query.map((part) => (/^(?:comp|restype|include|blocklisttype)=/.test(part) ? part : part.split('=')[0])).sort(),
    headers.map(shapeOfHeader).sort(),
    bytes === 0 ? 'empty' : /^\s*</.test(text) ? text.replace(/[A-Za-z0-9+/=]{6,}/g, 'x').slice(0, 120) : 'bytes',
  ];
  return { shape: JSON.stringify(shape), kept };
}

/** @param {string[]} header */
function shapeOfHeader([name = '', value = '']) {
  const word = name.toLowerCase();
  if (/^x-ms-meta-/.test(word)) return 'x-ms-meta';
  if (/^(?:x-ms-lease-action|x-ms-blob-type|if-)|range$/.test(word)) return `${word}:${value.slice(0, 8)}`;
  return word;
}

/** @param {string} name @param {string} value */
function keptValue(name, value) {
  const source = /^https?:\/\/[^/]*\/devstoreaccount1\/[^/]*(\/[^?]*)?(\?.*)?$/.exec(value);
  if (/(?:copy|rename)-source$/i.test(name) && source) {
    const [, blob = '', query = ''] = source;
    return `{origin}/{container}${/^\/[\w.-]+$/.test(blob) ? '/one' : blob}${/sig=/.test(query) ? '' : query}`;
  }
  return withFewGuids(value).slice(0, 2_048);
}

/** So that leases that one request takes are met by others. @param {string} text */
function withFewGuids(text) {
  return text.replace(GUID, (guid) => GUIDS[(guid.codePointAt(0) ?? 0) % GUIDS.length] ?? guid);
}
