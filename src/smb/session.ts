/** A session: one sign-in of an account, with its keys, trees and opens, over one or more connections (channels). */
import type { KnownAccount } from '../services/accounts/accounts.ts';
import type { Connection, Negotiated } from './connection.ts';
import type { MessageCipher } from './crypto/encryption.ts';
import type { Signer } from './crypto/signing.ts';
import type { SmbLimits } from './limits.ts';
import { OpenTable } from './opens.ts';
import { SmbError } from './statuses.ts';
import type { Tree } from './trees.ts';

/** What signing in has proved, and the keys that came of it. */
export interface SignIn {
  readonly account: KnownAccount;
  /** The key that was the password: the session ends when the account has it no longer. */
  readonly accountKey: string;
  readonly sessionKey: Buffer;
}

export class Session {
  readonly id: bigint;
  /** Of the connection on which the session began. */
  readonly negotiated: Negotiated;
  /** Of that connection; other channels have keys of their own. */
  readonly signer: Signer;
  readonly isSigningRequired: boolean;
  /** Every message has to be encrypted. */
  readonly isEncryptionRequired: boolean;
  /** Undefined: the dialect has no encryption, or none was negotiated. */
  readonly cipher: MessageCipher | undefined;
  readonly opens: OpenTable;
  /** Aborted when the session ends. */
  readonly ended = new AbortController();
  readonly #trees = new Map<number, Tree>();
  readonly #channels = new Map<Connection, Signer>();
  readonly #limits: SmbLimits;
  #signIn: SignIn;
  #lastTreeId = 0;

  constructor(
    options: Pick<
      Session,
      'id' | 'signIn' | 'negotiated' | 'signer' | 'isSigningRequired' | 'isEncryptionRequired' | 'cipher'
    >,
    limits: SmbLimits,
  ) {
    this.id = options.id;
    this.#signIn = options.signIn;
    this.negotiated = options.negotiated;
    this.signer = options.signer;
    this.isSigningRequired = options.isSigningRequired;
    this.isEncryptionRequired = options.isEncryptionRequired;
    this.cipher = options.cipher;
    this.#limits = limits;
    this.opens = new OpenTable(limits.opensPerSession);
  }

  get signIn(): SignIn {
    return this.#signIn;
  }

  /** The same account has signed in again, perhaps by its other key; the session keeps its own keys. */
  renew(signIn: SignIn): void {
    this.#signIn = signIn;
  }

  /** The connections that the session is used over. */
  get connections(): readonly Connection[] {
    return [...this.#channels.keys()];
  }

  addChannel(connection: Connection, signer: Signer): void {
    if (this.#channels.size >= this.#limits.channelsPerSession) throw new SmbError('INSUFFICIENT_RESOURCES');
    this.#channels.set(connection, signer);
  }

  /** Whether none is left. */
  removeChannel(connection: Connection): boolean {
    this.#channels.delete(connection);
    return this.#channels.size === 0;
  }

  signerFor(connection: Connection): Signer | undefined {
    return this.#channels.get(connection);
  }

  addTree<T extends Tree>(make: (id: number) => T): T {
    if (this.#trees.size >= this.#limits.treesPerSession) throw new SmbError('INSUFFICIENT_RESOURCES');
    this.#lastTreeId += 1;
    const tree = make(this.#lastTreeId);
    this.#trees.set(tree.id, tree);
    return tree;
  }

  /** Throws NETWORK_NAME_DELETED. */
  tree(id: number): Tree {
    const tree = this.#trees.get(id);
    if (!tree) throw new SmbError('NETWORK_NAME_DELETED');
    return tree;
  }

  /** Closes the opens of the tree. */
  async disconnectTree(tree: Tree): Promise<void> {
    this.#trees.delete(tree.id);
    await this.opens.closeAll(tree);
  }

  /** Closes everything; the table of sessions forgets the session before. */
  async end(): Promise<void> {
    this.ended.abort();
    this.#trees.clear();
    this.#channels.clear();
    await this.opens.closeAll();
  }
}
