/** RC4, by which NTLM wraps session keys and signatures; OpenSSL 3 has it no longer. Encrypts and decrypts alike. */
export function rc4(key: Buffer, message: Buffer): Buffer {
  const state = Uint8Array.from({ length: 256 }, (_, index) => index);
  const swap = (i: number, j: number) => {
    [state[i], state[j]] = [state[j]!, state[i]!];
  };
  for (let i = 0, j = 0; i < 256; i += 1) {
    j = (j + state[i]! + key[i % key.length]!) & 0xff;
    swap(i, j);
  }
  const result = Buffer.alloc(message.length);
  for (let at = 0, i = 0, j = 0; at < message.length; at += 1) {
    i = (i + 1) & 0xff;
    j = (j + state[i]!) & 0xff;
    swap(i, j);
    result[at] = message[at]! ^ state[(state[i]! + state[j]!) & 0xff]!;
  }
  return result;
}
