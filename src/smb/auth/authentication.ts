/** One sign-in, over as many SESSION_SETUP messages as it takes: NTLM, raw or in SPNEGO. Clients are answered in the form that they chose. */
import { timingSafeEqual } from 'node:crypto';
import type { KnownAccount } from '../../services/accounts/accounts.ts';
import type { SignIn } from '../session.ts';
import { WireError } from '../wire/reader.ts';
import {
  challengeClient,
  hashPassword,
  type NtlmExchange,
  type NtlmProof,
  type NtlmTarget,
  readProof,
  signFirst,
  verifyProof,
} from './ntlm.ts';
import { type ClientToken, isSpnego, NEG_STATE, readClientToken, writeServerToken } from './spnego.ts';

export interface AuthenticationOptions {
  readonly serverChallenge: Buffer;
  readonly target: NtlmTarget;
  /** By its name in lower case. */
  findAccount(name: string): KnownAccount | undefined;
}

export type AuthenticationStep =
  | { readonly state: 'continue'; readonly answer: Buffer }
  | { readonly state: 'refused'; readonly user: string; readonly reason: string }
  | { readonly state: 'signed in'; readonly answer: Buffer; readonly signIn: SignIn };

export class Authentication {
  readonly #options: AuthenticationOptions;
  /** Undefined until the first message: raw NTLM then. */
  #mechList: Buffer | undefined;
  #isWrapped = false;
  #exchange: NtlmExchange | undefined;

  constructor(options: AuthenticationOptions) {
    this.#options = options;
  }

  /** Whether the next token is to prove a password. */
  get isChallenged(): boolean {
    return this.#exchange !== undefined;
  }

  /** Throws a WireError if the bytes are no token. */
  step(bytes: Buffer): AuthenticationStep {
    if (!isSpnego(bytes)) return this.#isWrapped ? malformed() : this.#stepNtlm(bytes, undefined);
    this.#isWrapped = true;
    const client = readClientToken(bytes);
    const { mechList } = client;
    if (mechList) {
      this.#mechList = mechList.encoded;
      if (!mechList.offersNtlm) return { state: 'refused', user: '', reason: 'the client does not offer NTLM' };
      if (!mechList.prefersNtlm || !client.token) {
        const state = NEG_STATE.acceptIncomplete;
        return { state: 'continue', answer: writeServerToken({ state, choosesNtlm: true }) };
      }
    }
    if (!client.token) return malformed();
    return this.#stepNtlm(client.token, client);
  }

  #stepNtlm(token: Buffer, wrapper: ClientToken | undefined): AuthenticationStep {
    if (this.#exchange) return this.#prove(readProof(token), this.#exchange, wrapper);
    const { serverChallenge, target } = this.#options;
    this.#exchange = challengeClient(token, serverChallenge, target);
    const { challenge } = this.#exchange;
    const state = NEG_STATE.acceptIncomplete;
    return {
      state: 'continue',
      answer: wrapper ? writeServerToken({ state, choosesNtlm: true, token: challenge }) : challenge,
    };
  }

  #prove(proof: NtlmProof, exchange: NtlmExchange, wrapper: ClientToken | undefined): AuthenticationStep {
    const { user } = proof.fields;
    if (proof.isAnonymous) return { state: 'refused', user, reason: 'anonymous' };
    const account = this.#options.findAccount(user.toLowerCase());
    for (const { accountKey, hash } of passwordHashes(account)) {
      const sessionKey = verifyProof(proof, exchange, hash);
      if (!account || !sessionKey) continue;
      const mic = wrapper && this.#exchangeMics(wrapper, sessionKey, proof.fields.flags);
      if (wrapper && !mic) return { state: 'refused', user, reason: 'a wrong mechListMIC' };
      const answer = mic ? writeServerToken({ state: NEG_STATE.acceptCompleted, ...mic }) : Buffer.alloc(0);
      return { state: 'signed in', answer, signIn: { account, accountKey, sessionKey } };
    }
    return { state: 'refused', user, reason: account ? 'a wrong password' : 'an unknown account' };
  }

  /** Undefined: the client's MIC is wrong. A client that sends none gets none. */
  #exchangeMics({ mic }: ClientToken, sessionKey: Buffer, flags: number): { mic?: Buffer } | undefined {
    if (!mic || !this.#mechList) return {};
    const expected = signFirst(sessionKey, flags, 'client', this.#mechList);
    if (mic.length !== expected.length || !timingSafeEqual(mic, expected)) return undefined;
    return { mic: signFirst(sessionKey, flags, 'server', this.#mechList) };
  }
}

function malformed(): never {
  throw new WireError('not the token due');
}

interface PasswordHash {
  readonly accountKey: string;
  readonly hash: Buffer;
}

/** An account is another object after each change of its keys. */
const hashesByAccount = new WeakMap<KnownAccount, readonly PasswordHash[]>();
/** So that an unknown name takes as long as a wrong password. */
const noAccountHashes: readonly PasswordHash[] = [{ accountKey: '', hash: Buffer.alloc(16) }];

function passwordHashes(account: KnownAccount | undefined): readonly PasswordHash[] {
  if (!account) return noAccountHashes;
  const known = hashesByAccount.get(account);
  if (known) return known;
  const hashes = account.keys.map((accountKey) => ({ accountKey, hash: hashPassword(accountKey) }));
  hashesByAccount.set(account, hashes);
  return hashes;
}
