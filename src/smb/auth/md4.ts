/** MD4 (RFC 1320), by which NTLM hashes passwords; OpenSSL 3 has it no longer. */

const BLOCK_BYTES = 64;

type Words = [number, number, number, number];

export function md4(message: Buffer): Buffer {
  const padded = Buffer.alloc(Math.ceil((message.length + 9) / BLOCK_BYTES) * BLOCK_BYTES);
  message.copy(padded);
  padded[message.length] = 0x80;
  padded.writeBigUInt64LE(BigInt(message.length) * 8n, padded.length - 8);
  let state: Words = [0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476];
  for (let at = 0; at < padded.length; at += BLOCK_BYTES) state = mixBlock(state, padded, at);
  const digest = Buffer.alloc(16);
  for (const [index, word] of state.entries()) digest.writeUInt32LE(word >>> 0, index * 4);
  return digest;
}

interface Round {
  readonly mix: (b: number, c: number, d: number) => number;
  readonly constant: number;
  readonly shifts: readonly [number, number, number, number];
  /** The order in which the words of the block are used. */
  readonly order: readonly number[];
}

const rounds: readonly Round[] = [
  {
    mix: (b, c, d) => (b & c) | (~b & d),
    constant: 0,
    shifts: [3, 7, 11, 19],
    order: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
  },
  {
    mix: (b, c, d) => (b & c) | (b & d) | (c & d),
    constant: 0x5a827999,
    shifts: [3, 5, 9, 13],
    order: [0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15],
  },
  {
    mix: (b, c, d) => b ^ c ^ d,
    constant: 0x6ed9eba1,
    shifts: [3, 9, 11, 15],
    order: [0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15],
  },
];

function mixBlock(state: Words, bytes: Buffer, at: number): Words {
  let [a, b, c, d] = state;
  for (const { mix, constant, shifts, order } of rounds) {
    for (const [step, word] of order.entries()) {
      const sum = (a + mix(b, c, d) + bytes.readUInt32LE(at + word * 4) + constant) >>> 0;
      const shift = shifts[step % 4]!;
      [a, b, c, d] = [d, (sum << shift) | (sum >>> (32 - shift)), b, c];
    }
  }
  return [state[0] + a, state[1] + b, state[2] + c, state[3] + d].map((word) => word >>> 0) as Words;
}
