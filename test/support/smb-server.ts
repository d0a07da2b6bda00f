/** An SMB server on a share in memory, and connections to it. */
import { expect } from 'vitest';
import { type Log, silentLog } from '../../src/base/log.ts';
import type { Storage } from '../../src/services/common/storage.ts';
import { CommandMetrics } from '../../src/smb/command-metrics.ts';
import type { Dialect } from '../../src/smb/dialects.ts';
import type { SmbLimits } from '../../src/smb/limits.ts';
import { SmbServer } from '../../src/smb/server.ts';
import { CreateRequest } from '../../src/smb/wire/create.ts';
import { type CreateContext, writeCreateContexts } from '../../src/smb/wire/create-contexts.ts';
import { openShare, SHARE } from './file-storage.ts';
import { encodeBody, SmbConnection, type SmbMessage } from './smb-connection.ts';

export const ACCOUNT = { id: 1n, name: 'mine', keys: ['b25l'] };

export class TestSmbServer {
  readonly storage: Storage;
  readonly #server: SmbServer;
  readonly #url: string;
  readonly #connections: SmbConnection[] = [];

  static async start(limits: Partial<SmbLimits> = {}, log: Log = silentLog): Promise<TestSmbServer> {
    const { storage } = await openShare();
    const server = new SmbServer({
      accounts: { find: (name) => (name === ACCOUNT.name ? ACCOUNT : undefined) },
      storageFor: (_account, granted) => ({ ...storage, granted }),
      ...{ log, metrics: new CommandMetrics(), now: () => 638_000_000_000_000_000n },
      ...{ isEncryptionRequired: false, limits },
    });
    return new TestSmbServer(storage, server, `smb://127.0.0.1:${await server.listen(0, '127.0.0.1')}`);
  }

  private constructor(storage: Storage, server: SmbServer, url: string) {
    this.storage = storage;
    this.#server = server;
    this.#url = url;
  }

  /** Limits of time change after the connections of a test have been made: no time is too short for those. */
  changeLimits(limits: Partial<SmbLimits>): void {
    Object.assign(this.#server.limits, limits);
  }

  async connect(): Promise<SmbConnection> {
    const connection = await SmbConnection.open(this.#url);
    this.#connections.push(connection);
    return connection;
  }

  async signIn(dialects?: readonly Dialect[]): Promise<SmbConnection> {
    const connection = await this.connect();
    await connection.negotiate(dialects);
    expect((await connection.signIn(ACCOUNT.name, ACCOUNT.keys[0]!)).status).toBe('STATUS_SUCCESS');
    return connection;
  }

  async inShare(dialects?: readonly Dialect[]): Promise<SmbConnection> {
    const connection = await this.signIn(dialects);
    expect((await connection.connectTree(SHARE)).status).toBe('STATUS_SUCCESS');
    return connection;
  }

  async stop(): Promise<void> {
    for (const connection of this.#connections) connection.close();
    await this.#server.close();
  }
}

const OPEN_IF = 3;
const ALL_SHARED = 7;
const READ_AND_WRITE = 0x12_019f;

/** Opens the file or creates it, for reading and writing and shared with all, unless asked for otherwise. */
export function create(
  name: string,
  fields: Partial<CreateRequest> = {},
  contexts: readonly CreateContext[] = [],
): SmbMessage {
  const body = encodeBody(CreateRequest, {
    ...{ securityFlags: 0, requestedOplockLevel: 0, impersonationLevel: 2, smbCreateFlags: 0n, fileAttributes: 0 },
    ...{ desiredAccess: READ_AND_WRITE, shareAccess: ALL_SHARED, createDisposition: OPEN_IF, createOptions: 0, name },
    ...{ createContexts: writeCreateContexts(contexts), ...fields },
  });
  return { command: 5, body };
}
