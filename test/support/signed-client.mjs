/** Signed requests without an SDK: no retries, and a request without an answer is known as such. */
import { createHmac } from 'node:crypto';
import { Agent, request } from 'node:http';

const account = 'devstoreaccount1';
const key = Buffer.from(
  'Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==',
  'base64',
);

/**
 * @typedef {{ status: number, headers: import('node:http').IncomingHttpHeaders, body: Buffer, code: string | undefined }} Answer
 */

/** @param {string} origin */
export function connect(origin) {
  return connectBy(origin, sign);
}

/** @param {string} origin */
export function connectToTables(origin) {
  return connectBy(origin, signForTables);
}

/** @param {string} origin @param {typeof sign} signing of its service */
function connectBy(origin, signing) {
  const { hostname, port } = new URL(origin);
  const agent = new Agent({ keepAlive: true });

  /**
   * Rejects when the connection broke before the whole answer came.
   * @param {string} method
   * @param {string} target path in the account, with its query
   * @param {{ headers?: Record<string, string>, body?: Uint8Array, onRequest?: (outgoing: import('node:http').ClientRequest) => void }} options
   * @returns {Promise<Answer>}
   */
  function send(method, target, { headers = {}, body, onRequest } = {}) {
    const path = `/${account}${target}`;
    const length = method === 'PUT' || body ? { 'content-length': String(body?.length ?? 0) } : {};
    const all = { 'x-ms-date': new Date().toUTCString(), 'x-ms-version': '2025-01-05', ...length, ...headers };
    const authorization = `SharedKey ${account}:${signing(method, path, all)}`;
    return new Promise((resolve, reject) => {
      const outgoing = request(
        { hostname, port, method, path, agent, headers: { ...all, authorization } },
        (incoming) => {
          /** @type {Buffer[]} */
          const chunks = [];
          incoming.on('data', (chunk) => chunks.push(chunk));
          incoming.on('error', reject);
          incoming.on('end', () => {
            if (!incoming.complete) return reject(new Error('the answer was cut'));
            const code = incoming.headers['x-ms-error-code'];
            resolve({
              status: incoming.statusCode ?? 0,
              headers: incoming.headers,
              body: Buffer.concat(chunks),
              code: typeof code === 'string' ? code : undefined,
            });
          });
        },
      );
      outgoing.on('error', reject);
      if (onRequest) onRequest(outgoing);
      else outgoing.end(body);
    });
  }

  return {
    send,
    /** Of the account. */
    url: `${origin}/${account}`,
    /** @param {string} container */
    createContainer: (container) => send('PUT', `/${container}?restype=container`),
    /** @param {string} container */
    deleteContainer: (container) => send('DELETE', `/${container}?restype=container`),
    /** @param {string} path @param {Uint8Array} body @param {Record<string, string>} headers */
    putBlob: (path, body, headers = {}) =>
      send('PUT', `/${path}`, { headers: { 'x-ms-blob-type': 'BlockBlob', ...headers }, body }),
    /** @param {string} path @param {Record<string, string>} headers */
    getBlob: (path, headers = {}) => send('GET', `/${path}`, { headers }),
    /** @param {string} path @param {string} id @param {Uint8Array} body @param {Record<string, string>} headers */
    putBlock: (path, id, body, headers = {}) =>
      send('PUT', `/${path}?comp=block&blockid=${encodeURIComponent(id)}`, { headers, body }),
    /** @param {string} path @param {string} list its entries, as XML @param {Record<string, string>} headers */
    putBlockList: (path, list, headers = {}) =>
      send('PUT', `/${path}?comp=blocklist`, { headers, body: Buffer.from(`<BlockList>${list}</BlockList>`) }),
    /** @param {string} source @param {string} path @param {Record<string, string>} headers */
    copyBlob: (source, path, headers = {}) =>
      send('PUT', `/${path}`, { headers: { 'x-ms-copy-source': `${origin}/${account}/${source}`, ...headers } }),
    /** @param {string} path @param {Record<string, string>} headers */
    deleteBlob: (path, headers = {}) => send('DELETE', `/${path}`, { headers }),
    /** @param {string} path @param {string} id */
    acquireLease: (path, id) =>
      send('PUT', `/${path}?comp=lease`, {
        headers: { 'x-ms-lease-action': 'acquire', 'x-ms-lease-duration': '-1', 'x-ms-proposed-lease-id': id },
      }),
    /** @param {string} path @param {string} id */
    releaseLease: (path, id) =>
      send('PUT', `/${path}?comp=lease`, { headers: { 'x-ms-lease-action': 'release', 'x-ms-lease-id': id } }),
    /** Blobs that are deleted or replaced from now on are kept for so long. @param {number | undefined} days undefined: not at all */
    async setRetention(days) {
      const policy = days === undefined ? '<Enabled>false</Enabled>' : `<Enabled>true</Enabled><Days>${days}</Days>`;
      const properties = `<DeleteRetentionPolicy>${policy}</DeleteRetentionPolicy>`;
      const xml = Buffer.from(`<StorageServiceProperties>${properties}</StorageServiceProperties>`);
      const { status, body } = await send('PUT', '/?restype=service&comp=properties', { body: xml });
      if (status !== 202) throw new Error(`Set Blob Service Properties was answered ${status}: ${body}`);
    },
    /** Names of all blobs. @param {string} container @returns {Promise<string[]>} */
    async listBlobs(container, include = '') {
      const names = [];
      for (let marker = ''; ; ) {
        const query = `restype=container&comp=list&include=${include}&marker=${marker}`;
        const { status, body } = await send('GET', `/${container}?${query}`);
        if (status !== 200) throw new Error(`List Blobs was answered ${status}: ${body}`);
        const text = body.toString();
        for (const [, name] of text.matchAll(/<Name>([^<]*)<\/Name>/g)) names.push(name ?? '');
        marker = encodeURIComponent(/<NextMarker>([^<]+)</.exec(text)?.[1] ?? '');
        if (!marker) return names;
      }
    },
    /** @param {string} path */
    async getBlockList(path) {
      const { status, body } = await send('GET', `/${path}?comp=blocklist&blocklisttype=all`);
      if (status !== 200) throw new Error(`Get Block List of ${path} was answered ${status}: ${body}`);
      const text = body.toString();
      const middle = text.indexOf('<UncommittedBlocks');
      return { committed: blocksIn(text.slice(0, middle)), uncommitted: blocksIn(text.slice(middle)) };
    },
    close: () => agent.destroy(),
  };
}

/** @param {string} xml */
function blocksIn(xml) {
  const found = xml.matchAll(/<Name>([^<]*)<\/Name><Size>(\d+)<\/Size>/g);
  return [...found].map(([, id = '', length]) => ({ id, length: Number(length), seed: '' }));
}

/** @param {string} method @param {string} path @param {Record<string, string>} headers */
function sign(method, path, headers) {
  const { pathname, search } = new URL(path, 'http://host');
  const of = (/** @type {string} */ name) => headers[name] ?? '';
  const length = of('content-length') === '0' ? '' : of('content-length');
  const own = Object.entries(headers).filter(([name]) => name.startsWith('x-ms-'));
  const query = [...new URLSearchParams(search)].sort(([one], [other]) => (one < other ? -1 : 1));
  const lines = [
    method,
    '',
    '',
    length,
    of('content-md5'),
    of('content-type'),
    '',
    '',
    of('if-match'),
    of('if-none-match'),
    '',
    of('range'),
    ...own.sort(([one], [other]) => (one < other ? -1 : 1)).map(([name, value]) => `${name}:${value}`),
    `/${account}${pathname}`,
    ...query.map(([name, value]) => `${name}:${value}`),
  ];
  return createHmac('sha256', key).update(lines.join('\n')).digest('base64');
}

/** As the Table service wants it. @type {typeof sign} */
function signForTables(method, path, headers) {
  const { pathname } = new URL(path, 'http://host');
  const lines = [
    method,
    headers['content-md5'],
    headers['content-type'],
    headers['x-ms-date'],
    `/${account}${pathname}`,
  ];
  return createHmac('sha256', key).update(lines.join('\n')).digest('base64');
}
