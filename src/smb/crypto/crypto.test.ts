import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DIALECT } from '../dialects.ts';
import { WireError } from '../wire/reader.ts';
import { Cmac } from './cmac.ts';
import { type CipherName, MessageCipher } from './encryption.ts';
import { deriveCipherKeys, deriveSigningKey } from './key-derivation.ts';
import { Signer, type SigningAlgorithm } from './signing.ts';

const hex = (text: string) => Buffer.from(text, 'hex');

describe('AES-CMAC', () => {
  // RFC 4493, section 4.
  const cmac = new Cmac(hex('2b7e151628aed2a6abf7158809cf4f3c'));
  const message = hex(
    '6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e5130c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710',
  );
  it.each([
    [0, 'bb1d6929e95937287fa37d129b756746'],
    [16, '070a16b46b4d4144f79bdd9dd04a287c'],
    [40, 'dfa66747de9ae63030ca32611497c827'],
    [64, '51f0bebf7e3b9d92fc49741779363cfe'],
  ])('of the first %i bytes is that of the RFC', (length, mac) => {
    expect(cmac.compute(message.subarray(0, length)).toString('hex')).toBe(mac);
  });
});

/** The examples are those of the client's side: what it encrypts by, the server decrypts by. */
describe('The keys of a session', () => {
  const none = Buffer.alloc(64);

  it('are those of Microsoft for 3.0', () => {
    const key = hex('7CD451825D0450D235424E44BA6E78CC');
    expect(deriveSigningKey(DIALECT.smb300, key, none)).toEqual(hex('0B7E9C5CAC36C0F6EA9AB275298CEDCE'));
    expect(deriveCipherKeys(DIALECT.smb300, 'aes-128-ccm', key, none)).toEqual({
      decryption: hex('FAD27796665B313EBB578F388632B4F7'),
      encryption: hex('B0F0427F7CEB416D1D9DCC0CD4F99447'),
    });
  });

  it('are those of Microsoft for 3.1.1, where the hash of the sign-in is part of them', () => {
    const key = hex('270E1BA896585EEB7AF3472D3B4C75A7');
    const hash = hex(
      '0DD13628CC3ED218EF9DF9772D436D0887AB9814BFAE63A80AA845F36909DB7928622DDDAD522D9751640A459762C5A9D6BB084CBB3CE6BDADEF5D5BCE3C6C01',
    );
    expect(deriveSigningKey(DIALECT.smb311, key, hash)).toEqual(hex('73FE7A9A77BEF0BDE49C650D8CCB5F76'));
    expect(deriveCipherKeys(DIALECT.smb311, 'aes-128-gcm', key, hash)).toEqual({
      decryption: hex('629BCBC54422A0F572B97F45989B6073'),
      encryption: hex('E2AF0DCEFAC68DA71A0DFBD0D1350D74'),
    });
    expect(deriveSigningKey(DIALECT.smb311, key, none)).not.toEqual(deriveSigningKey(DIALECT.smb311, key, hash));
    expect(deriveCipherKeys(DIALECT.smb311, 'aes-256-gcm', key, hash).encryption).toHaveLength(32);
  });

  it('are the session key itself for 2.1', () => {
    expect(deriveSigningKey(DIALECT.smb210, hex('00'), none)).toEqual(hex('00'));
  });
});

const aMessage = fc.uint8Array({ minLength: 64, maxLength: 300 }).map((bytes) => Buffer.from(bytes));
const aKey = fc.uint8Array({ minLength: 16, maxLength: 16 }).map((bytes) => Buffer.from(bytes));

describe('A signature', () => {
  const algorithms: readonly SigningAlgorithm[] = ['hmac-sha256', 'aes-cmac', 'aes-gmac'];

  it.each(algorithms)('by %s covers every bit of the message', (algorithm) => {
    fc.assert(
      fc.property(aKey, aMessage, fc.nat(), (key, message, at) => {
        const signer = new Signer(algorithm, key);
        signer.sign(message);
        const before = Buffer.from(message);
        expect(signer.verify(message)).toBe(true);
        expect(message).toEqual(before);
        message[at % message.length]! ^= 1;
        expect(signer.verify(message)).toBe(false);
      }),
    );
  });

  it('in a captured answer of a SESSION_SETUP is that of Microsoft', () => {
    const answer = hex(
      'FE534D4240000100000000000100800009000000000000000300000000000000FFFE0000000000001900000000100000EBE146DA120BA25FC3376A49DFE31BC10900000048001D00A11B3019A0030A0100A3120410010000003B453CDC3524164200000000',
    );
    expect(new Signer('aes-cmac', hex('73FE7A9A77BEF0BDE49C650D8CCB5F76')).verify(answer)).toBe(true);
  });
});

describe('An encrypted message', () => {
  const ciphers: readonly CipherName[] = ['aes-128-ccm', 'aes-128-gcm', 'aes-256-ccm', 'aes-256-gcm'];

  it.each(ciphers)('by %s is decrypted by the other side, and by nobody if a bit of it has changed', (name) => {
    const size = name.startsWith('aes-256') ? 32 : 16;
    const [one, other] = [Buffer.alloc(size, 1), Buffer.alloc(size, 2)];
    const server = new MessageCipher(name, { encryption: one, decryption: other });
    const client = new MessageCipher(name, { encryption: other, decryption: one });
    fc.assert(
      fc.property(aMessage, fc.nat(), (message, at) => {
        const packet = Buffer.concat(client.encrypt(message, 7n));
        expect(server.decrypt(packet)).toEqual(message);
        // The protocol's name and the unused bytes after the nonce are not part of the proof.
        const unprotected = at % packet.length < 4;
        if (unprotected) return;
        packet[at % packet.length]! ^= 1;
        expect(() => server.decrypt(packet)).toThrow(WireError);
      }),
    );
  });

  it('never has the nonce of another one', () => {
    const cipher = new MessageCipher('aes-128-gcm', { encryption: Buffer.alloc(16), decryption: Buffer.alloc(16) });
    const nonces = Array.from({ length: 1_000 }, () => cipher.encrypt(Buffer.alloc(64), 1n)[0].toString('hex', 20, 36));
    expect(new Set(nonces).size).toBe(1_000);
  });
});
