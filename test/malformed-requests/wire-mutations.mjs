/** Mutations of a request after it is signed: its length, its framing, its bytes. */

/** @typedef {import('./mutations.mjs').Random} Random */

/**
 * Each takes chance, the head without its last empty line, and the body.
 * @type {Readonly<Record<string, (random: Random, head: string, body: Buffer) => Buffer>>}
 */
export const wireMutations = {
  'bits flip': (random, head, body) => {
    const bytes = joinMessage(head, body);
    for (let times = 1 + random.below(4); times > 0; times--) {
      const at = random.below(bytes.length);
      bytes[at] = (bytes[at] ?? 0) ^ (1 << random.below(8));
    }
    return bytes;
  },
  'bytes are missing': (random, head, body) => {
    const bytes = joinMessage(head, body);
    const from = random.below(bytes.length);
    return Buffer.concat([bytes.subarray(0, from), bytes.subarray(from + 1 + random.below(20))]);
  },
  'bytes come twice': (random, head, body) => {
    const bytes = joinMessage(head, body);
    const from = random.below(bytes.length);
    return Buffer.concat([bytes.subarray(0, from + random.below(50)), bytes.subarray(from)]);
  },
  'it is cut': (random, head, body) => {
    const bytes = joinMessage(head, body);
    return bytes.subarray(0, random.below(bytes.length));
  },
  'the length is too large': (random, head, body) =>
    joinMessage(withLength(head, body.length + 1 + random.below(1_000)), body),
  'the length is too small': (random, head, body) => joinMessage(withLength(head, random.below(body.length + 1)), body),
  'the length is none': (random, head, body) =>
    joinMessage(withLength(head, random.oneOf(['-1', 'x', '', '1e3', '+5', '0x5', '5, 5', '1'.repeat(30)])), body),
  'the length comes twice': (random, head, body) =>
    joinMessage(`${head}\r\nContent-Length: ${random.below(100)}`, body),
  'it is chunked': (random, head, body) => {
    const chunked = `${head.replace(/\r\nContent-Length: [^\r]*/i, '')}\r\nTransfer-Encoding: chunked`;
    const at = random.below(body.length + 1);
    return Buffer.concat([
      joinMessage(chunked, Buffer.alloc(0)),
      ...[body.subarray(0, at), body.subarray(at)].map(chunkOf),
      chunkOf(Buffer.alloc(0)),
    ]);
  },
  'it is chunked and has a length': (_, head, body) =>
    joinMessage(`${head}\r\nTransfer-Encoding: chunked`, chunkOf(body)),
  'its chunks are broken': (random, head, body) => {
    const chunked = `${head.replace(/\r\nContent-Length: [^\r]*/i, '')}\r\nTransfer-Encoding: ${random.oneOf(['chunked', 'gzip, chunked', 'xchunked', 'chunked, chunked', 'identity'])}`;
    const text = random.oneOf([
      'zz\r\n',
      'ffffffffffffffff\r\n',
      '-1\r\n',
      '5;a=b\r\nhello\r\n0\r\n\r\n',
      '5\r\nhel',
      '0\r\nTrailer: x\r\n\r\n',
      '\r\n',
      '3\r\nabcd\r\n',
    ]);
    return Buffer.concat([joinMessage(chunked, Buffer.alloc(0)), Buffer.from(text), body]);
  },
  'a header is broken': (random, head, body) =>
    joinMessage(
      `${head}\r\n${random.oneOf(['no colon', ': empty', 'a b: c', ' folded: x', 'x\0: y', 'x: \0', 'x: a\rb', 'x: a\nb: c', '\tx: y', 'x : y', 'é: ü'])}`,
      body,
    ),
  'there is no host': (_, head, body) => joinMessage(head.replace(/\r\nHost: [^\r]*/i, ''), body),
  'there are two hosts': (_, head, body) => joinMessage(`${head}\r\nHost: other`, body),
  'the protocol is another': (random, head, body) =>
    joinMessage(
      head.replace(
        'HTTP/1.1',
        random.oneOf(['HTTP/1.0', 'HTTP/2.0', 'HTTP/1.2', 'HTTP/0.9', 'http/1.1', 'HTTP/1.1 ', '', 'RTSP/1.0']),
      ),
      body,
    ),
  'lines end without a return': (_, head, body) =>
    Buffer.concat([Buffer.from(`${head.replaceAll('\r\n', '\n')}\n\n`, 'latin1'), body]),
  'the target has another form': (random, head, body) =>
    joinMessage(
      head.replace(
        / (\S*) /,
        (_, target) =>
          ` ${random.oneOf([`http://other${target}`, `HTTP://127.0.0.1${target}`, '*', 'other:80', `//${target}`, `x${target}`, `/\\${target}`, `${target}#x`, `${target} x`, ''])} `,
      ),
      body,
    ),
  'it is asked to continue': (random, head, body) =>
    joinMessage(`${head}\r\nExpect: ${random.oneOf(['100-continue', '100-Continue', 'x', ''])}`, body),
  'it is upgraded': (random, head, body) =>
    joinMessage(`${head}\r\nConnection: Upgrade\r\nUpgrade: ${random.oneOf(['websocket', 'h2c', 'TLS/1.0'])}`, body),
  'the connection is to close': (random, head, body) =>
    joinMessage(`${head}\r\nConnection: ${random.oneOf(['close', 'Close, keep-alive', 'x', ''])}`, body),
  'its head is too long': (random, head, body) =>
    joinMessage(`${head}\r\nx-long: ${'x'.repeat(random.oneOf([8_000, 16_000, 65_000, 70_000]))}`, body),
  'there are very many headers': (_, head, body) => joinMessage(`${head}${'\r\na: b'.repeat(3_000)}`, body),
};

/** @param {string} head @param {Buffer} body */
export function joinMessage(head, body) {
  return Buffer.concat([Buffer.from(`${head}\r\n\r\n`, 'latin1'), body]);
}

/** @param {string} head @param {string | number} length */
function withLength(head, length) {
  return `${head.replace(/\r\nContent-Length: [^\r]*/i, '')}\r\nContent-Length: ${length}`;
}

/** @param {Buffer} bytes */
function chunkOf(bytes) {
  return Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')]);
}
