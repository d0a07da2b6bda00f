import { createHmac } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { WireError } from '../wire/reader.ts';
import { Authentication } from './authentication.ts';
import { md4 } from './md4.ts';
import { challengeClient, hashPassword, readProof, responseKey, signFirst, verifyProof } from './ntlm.ts';
import {
  AV_ID,
  MESSAGE_TYPE,
  NTLM_FLAG,
  NTLM_SIGNATURE,
  NtlmAuthenticate,
  NtlmChallenge,
  readAvPairs,
} from './ntlm-messages.ts';
import { rc4 } from './rc4.ts';
import { isSpnego, readClientToken, serverOffer } from './spnego.ts';

const hex = (text: string) => Buffer.from(text.replaceAll(' ', ''), 'hex');
const utf16 = (text: string) => Buffer.from(text, 'utf16le');
const hmacMd5 = (key: Buffer, ...parts: Buffer[]) => createHmac('md5', key).update(Buffer.concat(parts)).digest();

describe('MD4', () => {
  // RFC 1320, appendix 5.
  it.each([
    ['', '31d6cfe0d16ae931b73c59d7e0c089c0'],
    ['a', 'bde52cb31de33e46245e05fbdbd6fb24'],
    ['message digest', 'd9130a8164549fe818874806e1c7014b'],
    [
      '12345678901234567890123456789012345678901234567890123456789012345678901234567890',
      'e33b4ddc9c38f2199c3e7b164fcc0536',
    ],
  ])('of "%s" is that of the RFC', (text, digest) => {
    expect(md4(Buffer.from(text)).toString('hex')).toBe(digest);
  });
});

describe('RC4', () => {
  it.each([
    ['Key', 'Plaintext', 'bbf316e8d940af0ad3'],
    ['Wiki', 'pedia', '1021bf0420'],
    ['Secret', 'Attack at dawn', '45a01f645fc35b383552544b9bf5'],
  ])('with %s encrypts %s as everywhere', (key, text, encrypted) => {
    expect(rc4(Buffer.from(key), Buffer.from(text)).toString('hex')).toBe(encrypted);
    expect(rc4(Buffer.from(key), hex(encrypted)).toString()).toBe(text);
  });
});

/** MS-NLMP 4.2.1 and 4.2.4: User, Domain, Password; time 0; keys that are exchanged. */
const nlmp = {
  serverChallenge: hex('0123456789abcdef'),
  temp: Buffer.concat([
    hex('0101000000000000 0000000000000000 aaaaaaaaaaaaaaaa 00000000'),
    hex('02000c0044006f006d00610069006e00 01000c00530065007200760065007200 00000000 00000000'),
  ]),
  proof: hex('68cd0ab851e51c96aabc927bebef6a1c'),
  sessionBaseKey: hex('8de40ccadbc14a82f15cb0ad0de95ca3'),
  encryptedSessionKey: hex('c5dad2544fc9799094ce1ce90bc9d03e'),
  sessionKey: Buffer.alloc(16, 0x55),
};

function authenticate(fields: Partial<NtlmAuthenticate> = {}): Buffer {
  return NtlmAuthenticate.encode({
    ...{ signature: NTLM_SIGNATURE, messageType: MESSAGE_TYPE.authenticate, lmResponse: Buffer.alloc(24) },
    ...{ ntResponse: Buffer.concat([nlmp.proof, nlmp.temp]), domain: 'Domain', user: 'User', workstation: 'COMPUTER' },
    ...{ encryptedSessionKey: nlmp.encryptedSessionKey, flags: NTLM_FLAG.keyExchange | NTLM_FLAG.unicode },
    ...fields,
  });
}

describe('NTLMv2', () => {
  const exchange = { negotiate: Buffer.alloc(0), challenge: Buffer.alloc(0), serverChallenge: nlmp.serverChallenge };
  const passwordHash = hashPassword('Password');

  it('hashes a password as MS-NLMP does', () => {
    expect(passwordHash).toEqual(hex('a4f49c406510bdcab6824ee7c30fd852'));
    expect(responseKey(passwordHash, 'User', 'Domain')).toEqual(hex('0c868a403bfd7a93a3001ef22ef02e3f'));
  });

  it("takes the proof of MS-NLMP's example, and has its session key", () => {
    expect(verifyProof(readProof(authenticate()), exchange, passwordHash)).toEqual(nlmp.sessionKey);
    const withoutExchange = authenticate({ flags: NTLM_FLAG.unicode });
    expect(verifyProof(readProof(withoutExchange), exchange, passwordHash)).toEqual(nlmp.sessionBaseKey);
  });

  it('refuses another password, another user, another challenge and responses of NTLMv1', () => {
    expect(verifyProof(readProof(authenticate()), exchange, hashPassword('password'))).toBeUndefined();
    expect(verifyProof(readProof(authenticate({ user: 'Users' })), exchange, passwordHash)).toBeUndefined();
    const another = { ...exchange, serverChallenge: Buffer.alloc(8) };
    expect(verifyProof(readProof(authenticate()), another, passwordHash)).toBeUndefined();
    const versionOne = authenticate({ ntResponse: Buffer.alloc(24) });
    expect(verifyProof(readProof(versionOne), exchange, passwordHash)).toBeUndefined();
  });

  it('has the signing key of MS-NLMP in the first signature', () => {
    // Without an exchange of keys the checksum is not sealed.
    const signingKey = hex('4788dc861b4782f35d43fd98fe1a2d39');
    const seq = Buffer.alloc(4);
    const checksum = hmacMd5(signingKey, seq, utf16('Plaintext')).subarray(0, 8);
    const signature = signFirst(nlmp.sessionKey, NTLM_FLAG.key128, 'client', utf16('Plaintext'));
    expect(signature).toEqual(Buffer.concat([hex('01000000'), checksum, seq]));
    // MS-NLMP 4.2.4.4 has it sealed.
    const sealed = signFirst(nlmp.sessionKey, NTLM_FLAG.key128 | NTLM_FLAG.keyExchange, 'client', utf16('Plaintext'));
    expect(sealed).toHaveLength(16);
    expect(sealed).not.toEqual(signature);
  });

  it('offers its time, so that clients send a MIC', () => {
    const negotiate = Buffer.concat([NTLM_SIGNATURE, hex('01000000'), hex('978208e2'), Buffer.alloc(16)]);
    const { challenge } = challengeClient(negotiate, nlmp.serverChallenge, { name: 'HOLDFAST', time: 5n });
    const { targetInfo, targetName, serverChallenge } = NtlmChallenge.decode(challenge);
    expect(targetName).toBe('HOLDFAST');
    expect(serverChallenge).toEqual(nlmp.serverChallenge);
    expect(readAvPairs(targetInfo).get(AV_ID.timestamp)).toEqual(hex('0500000000000000'));
  });
});

describe('A sign-in', () => {
  const account = { id: 1n, name: 'mine', keys: ['b25l', 'dHdv'] };
  const options = {
    serverChallenge: nlmp.serverChallenge,
    target: { name: 'HOLDFAST', time: 0n },
    findAccount: (name: string) => (name === 'mine' ? account : undefined),
  };
  const negotiate = Buffer.concat([NTLM_SIGNATURE, hex('01000000'), hex('978208e2'), Buffer.alloc(16)]);

  function proofWith(password: string, user: string, flags = 0): Buffer {
    const key = responseKey(hashPassword(password), user, 'AZURE');
    const proof = hmacMd5(key, nlmp.serverChallenge, nlmp.temp);
    const ntResponse = Buffer.concat([proof, nlmp.temp]);
    return authenticate({ ntResponse, user, domain: 'AZURE', flags: NTLM_FLAG.unicode | flags });
  }

  it.each([['b25l'], ['dHdv']])('takes key %s of the account, in any case of the name', (key) => {
    const authentication = new Authentication(options);
    expect(authentication.step(negotiate).state).toBe('continue');
    expect(authentication.step(proofWith(key, 'MiNe'))).toMatchObject({
      state: 'signed in',
      signIn: { account, accountKey: key },
    });
  });

  it('refuses others, anonymous clients, and a proof that was not asked for', () => {
    const refusal = (message: Buffer) => {
      const authentication = new Authentication(options);
      authentication.step(negotiate);
      return authentication.step(message);
    };
    expect(refusal(proofWith('three', 'mine'))).toMatchObject({ state: 'refused', reason: 'a wrong password' });
    expect(refusal(proofWith('b25l', 'yours'))).toMatchObject({ state: 'refused', reason: 'an unknown account' });
    expect(refusal(proofWith('', 'yours'))).toMatchObject({ state: 'refused' });
    expect(refusal(proofWith('b25l', 'mine', NTLM_FLAG.anonymous))).toMatchObject({ reason: 'anonymous' });
    expect(() => new Authentication(options).step(proofWith('b25l', 'mine'))).toThrow(WireError);
  });

  it('of junk ends in a WireError or a refusal', () => {
    const starts = [Buffer.alloc(0), NTLM_SIGNATURE, negotiate, serverOffer(), hex('a1'), hex('60')];
    fc.assert(
      fc.property(
        fc.constantFrom(...starts),
        fc.uint8Array({ maxLength: 200 }),
        fc.boolean(),
        (start, junk, second) => {
          const authentication = new Authentication(options);
          if (second) authentication.step(negotiate);
          try {
            expect(authentication.step(Buffer.concat([start, junk])).state).not.toBe('signed in');
          } catch (error) {
            expect(error).toBeInstanceOf(WireError);
          }
        },
      ),
      { numRuns: 1_000 },
    );
  });
});

describe('SPNEGO', () => {
  it('of the server offers NTLM alone', () => {
    expect(isSpnego(serverOffer())).toBe(true);
    // [0] mechTypes: a sequence of one OID, 1.3.6.1.4.1.311.2.2.10.
    expect(serverOffer().toString('hex')).toContain('a00e300c060a2b06010401823702020a');
  });

  it('names the mechanisms of a client, and whether the token is of NTLM', () => {
    const kerberosFirst = hex('601f06062b0601050502 a0153013a011300f 06 0b 2a864886f71201020202 00');
    expect(() => readClientToken(kerberosFirst)).toThrow(WireError);
    const ntlm = hex('601c06062b0601050502 a0123010a00e300c 060a2b06010401823702020a');
    expect(readClientToken(ntlm)).toMatchObject({
      mechList: { offersNtlm: true, prefersNtlm: true },
      token: undefined,
    });
  });
});
