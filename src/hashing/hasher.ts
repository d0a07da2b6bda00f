/** MD5 and the CRC64 of Azure Storage, computed in the calling thread. */
import { createHash, hash } from 'node:crypto';
import { createCrc64 } from './crc64.ts';

export { crc64Base64 } from './crc64.ts';

/** Both in base64; MD5 only if it was wanted. */
export interface Hashes {
  readonly md5: string | undefined;
  readonly crc64: string;
}

export interface Hasher {
  update(bytes: Uint8Array): void;
  digest(): Hashes;
}

export function md5Base64(bytes: Uint8Array): string {
  return hash('md5', bytes, 'base64');
}

export function createHasher(wants: { md5: boolean }): Hasher {
  const md5 = wants.md5 ? createHash('md5') : undefined;
  const crc = createCrc64();
  return {
    update(bytes) {
      crc.update(bytes);
      md5?.update(bytes);
    },
    digest: () => ({ md5: md5?.digest('base64'), crc64: crc.digest() }),
  };
}
