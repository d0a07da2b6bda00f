/** Microsoft's az: the commands of `az storage` for containers, blobs, queues and tables. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pip } from './install.mjs';
import { run } from './steps.mjs';

/** @typedef {import('./clients.mjs').Client} Client */

const CONTENT = 'content of a file\n';
const blob = ['--container-name', 'azcli', '--name', 'a b/ü+%25'];
const copied = ['--destination-container', 'azcli', '--destination-blob', 'copy'];
const entity = ['--table-name', 'azcli', '--partition-key', 'p', '--row-key', 'r'];

/** Titles, the words after `az storage`, and what the answer holds. @type {readonly [string, readonly string[], RegExp][]} */
const steps = [
  ['creates a container', ['container', 'create', '--name', 'azcli'], /"created": true/],
  ['lists containers', ['container', 'list'], /"name": "azcli"/],
  [
    'sets the metadata of a container',
    ['container', 'metadata', 'update', '--name', 'azcli', '--metadata', 'by=az'],
    /etag/,
  ],
  [
    'stores an access policy',
    ['container', 'policy', 'create', '--container-name', 'azcli', '--name', 'readers', '--permissions', 'r'],
    /etag/,
  ],
  ['lists access policies', ['container', 'policy', 'list', '--container-name', 'azcli'], /readers/],
  ['uploads', ['blob', 'upload', ...blob, '--file', 'up/file'], /etag/],
  ['does not overwrite', ['blob', 'upload', ...blob, '--file', 'up/file'], /BlobAlreadyExists|already exists/],
  [
    'uploads in blocks',
    [
      'blob',
      'upload',
      '--container-name',
      'azcli',
      '--name',
      'large',
      '--file',
      'large',
      '--tier',
      'Cool',
      '--tags',
      'by=az',
    ],
    /etag/,
  ],
  ['shows a blob', ['blob', 'show', ...blob], /"contentLength": 18/],
  ['lists blobs', ['blob', 'list', '--container-name', 'azcli', '--prefix', 'a b'], /"name": "a b\/ü\+%25"/],
  ['downloads', ['blob', 'download', ...blob, '--file', 'down', '--no-progress'], /"contentLength": 18/],
  ['sets metadata', ['blob', 'metadata', 'update', ...blob, '--metadata', 'by=az'], /etag/],
  ['sets properties', ['blob', 'update', ...blob, '--content-type', 'text/x-az'], /etag/],
  ['sets a tier', ['blob', 'set-tier', ...blob, '--tier', 'Cold'], /^$/],
  [
    'copies',
    ['blob', 'copy', 'start', '--source-container', 'azcli', '--source-blob', 'large', ...copied],
    /"copy_status": "success"|"success"/,
  ],
  [
    'acquires a lease',
    ['blob', 'lease', 'acquire', '--container-name', 'azcli', '--blob-name', 'copy', '--lease-duration', '60'],
    /^"[-\da-f]{36}"$/,
  ],
  [
    'does not delete what is leased',
    ['blob', 'delete', '--container-name', 'azcli', '--name', 'copy'],
    /LeaseIdMissing|no lease ID/,
  ],
  [
    'breaks a lease',
    ['blob', 'lease', 'break', '--container-name', 'azcli', '--blob-name', 'copy', '--lease-break-period', '0'],
    /^0$/,
  ],
  ['deletes a blob', ['blob', 'delete', '--container-name', 'azcli', '--name', 'copy'], /^$/],
  ['takes a snapshot', ['blob', 'snapshot', ...blob], /"snapshot": "\d/],
  [
    'uploads an append blob',
    ['blob', 'upload', '--container-name', 'azcli', '--name', 'append', '--file', 'up/file', '--type', 'append'],
    /etag/,
  ],
  [
    'uploads a page blob',
    ['blob', 'upload', '--container-name', 'azcli', '--name', 'page', '--file', 'pages', '--type', 'page'],
    /etag/,
  ],
  [
    'uploads a folder',
    ['blob', 'upload-batch', '--destination', 'azcli', '--destination-path', 'batch', '--source', 'up'],
    /batch\/file/,
  ],
  [
    'copies a folder',
    [
      'blob',
      'copy',
      'start-batch',
      '--source-container',
      'azcli',
      '--pattern',
      'batch/*',
      '--destination-container',
      'azcli',
      '--destination-path',
      'again',
    ],
    /again\/batch\/file/,
  ],
  ['deletes a folder', ['blob', 'delete-batch', '--source', 'azcli', '--pattern', 'batch/*'], /^(\[\]|)$/],
  [
    'sees that a blob is gone',
    ['blob', 'exists', '--container-name', 'azcli', '--name', 'batch/file'],
    /"exists": false/,
  ],
  ['adds a CORS rule', ['cors', 'add', '--services', 'b', '--methods', 'GET', '--origins', '*'], /^$/],
  ['lists CORS rules', ['cors', 'list', '--services', 'b'], /"AllowedOrigins": "\*"/],
  ['deletes a container', ['container', 'delete', '--name', 'azcli'], /"deleted": true/],
  ['creates a queue', ['queue', 'create', '--name', 'azcli'], /"created": true/],
  ['puts a message', ['message', 'put', '--queue-name', 'azcli', '--content', 'a <b> ü'], /"content": "a <b> ü"/],
  ['gets a message', ['message', 'get', '--queue-name', 'azcli'], /"popReceipt"/],
  ['clears a queue', ['message', 'clear', '--queue-name', 'azcli'], /^$/],
  ['deletes a queue', ['queue', 'delete', '--name', 'azcli'], /"deleted": true/],
  ['creates a table', ['table', 'create', '--name', 'azcli'], /"created": true/],
  [
    'inserts an entity',
    [
      'entity',
      'insert',
      '--table-name',
      'azcli',
      '--entity',
      'PartitionKey=p',
      'RowKey=r',
      'n=7',
      'n@odata.type=Edm.Int32',
    ],
    /etag/,
  ],
  [
    'merges an entity',
    ['entity', 'merge', '--table-name', 'azcli', '--entity', 'PartitionKey=p', 'RowKey=r', 'text=ü'],
    /etag/,
  ],
  ['queries entities', ['entity', 'query', '--table-name', 'azcli', '--filter', 'n gt 6'], /"text": "ü"/],
  ['deletes an entity', ['entity', 'delete', ...entity], /"deleted"|^$/],
  ['deletes a table', ['table', 'delete', '--name', 'azcli'], /"deleted": true/],
];

/** @type {Client['install']} */
export async function installAz() {
  const tool = await pip('az', ['azure-cli']);
  return { ...tool, command: join(dirname(tool.command), 'az') };
}

/** @type {Client['run']} */
export async function runAz({ command }, { target, folder }) {
  mkdirSync(join(folder, 'up'));
  writeFileSync(join(folder, 'up', 'file'), CONTENT);
  writeFileSync(join(folder, 'pages'), Buffer.alloc(1_024, 1));
  writeFileSync(join(folder, 'large'), Buffer.alloc(70 * 1024 * 1024, 2));
  const env = {
    AZURE_STORAGE_CONNECTION_STRING: target.connectionString,
    AZURE_CONFIG_DIR: join(folder, 'config'),
    AZURE_CORE_COLLECT_TELEMETRY: 'no',
    AZURE_CORE_NO_COLOR: 'yes',
  };
  const checks = [];
  for (const [title, words, expected] of steps) {
    const { stdout, stderr } = await run(command, ['storage', ...words, '--only-show-errors'], { cwd: folder, env });
    const answer = `${stdout}${stderr}`.trim();
    checks.push(expected.test(answer) ? { title } : { title, fault: answer.slice(-600) });
  }
  const down = join(folder, 'down');
  const isSame = existsSync(down) && readFileSync(down, 'utf8') === CONTENT;
  return [...checks, { title: 'downloads what it uploaded', ...(isSame ? {} : { fault: 'other bytes' }) }];
}
