/**
 * A client of SMB 2.1 for one connection, made of the server's own wire structs: smbclient and the client of Linux's kernel open files only
 * with all shared, and this example is about what is not. It signs in with NTLMv2 and does not sign its messages.
 */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { FrameReader, frame } from '../../src/smb/framing.ts';
import { STATUS } from '../../src/smb/statuses.ts';
import { CloseRequest } from '../../src/smb/wire/close.ts';
import { CREATE_OPTIONS, CreateRequest, CreateResponse } from '../../src/smb/wire/create.ts';
import type { FileId } from '../../src/smb/wire/file-id.ts';
import { HEADER_BYTES, type Header, NO_SIGNATURE, readHeader, writeHeader } from '../../src/smb/wire/header.ts';
import { NegotiateRequest, negotiateRequest, SECURITY_MODE } from '../../src/smb/wire/negotiate.ts';
import { Reader } from '../../src/smb/wire/reader.ts';
import { SessionSetupRequest, SessionSetupResponse } from '../../src/smb/wire/session-setup.ts';
import type { Struct } from '../../src/smb/wire/struct.ts';
import { TreeConnectRequest } from '../../src/smb/wire/tree-connect.ts';
import { WriteRequest } from '../../src/smb/wire/write.ts';
import { Writer } from '../../src/smb/wire/writer.ts';
import { type Credentials, ntlmAuthenticate, ntlmNegotiate } from './smb-sign-in.ts';

const COMMAND = { negotiate: 0, sessionSetup: 1, treeConnect: 3, create: 5, close: 6, write: 9 } as const;
const DIALECT_2_1 = 0x0210;
const PACKET_BYTES_MAX = 2 ** 24;
const CREDITS = 32;

export const ACCESS = { read: 0x12_0089, write: 0x12_0116, delete: 0x1_0000 } as const;
export const SHARE = { none: 0, read: 1, write: 2, delete: 4 } as const;
export const DISPOSITION = { open: 1, create: 2, openIf: 3, overwriteIf: 5 } as const;

export interface SmbAddress extends Credentials {
  readonly host: string;
  readonly port: number;
  readonly share: string;
}

export interface OpenOptions {
  readonly access: number;
  readonly share: number;
  readonly disposition?: number;
  readonly deleteOnClose?: boolean;
  readonly isDirectory?: boolean;
}

export interface Answer {
  readonly header: Header;
  /** From the header on: offsets in the body count from there. */
  readonly message: Buffer;
}

export class SmbFailure extends Error {
  readonly status: number;

  constructor(status: number) {
    const name = Object.entries(STATUS).find(([, code]) => code === status)?.[0] ?? `0x${status.toString(16)}`;
    super(`STATUS_${name}`);
    this.status = status;
  }
}

export class SmbClient {
  readonly socket: Socket;
  readonly #waiting = new Map<bigint, (answer: Answer) => void>();
  #fail: ((error: Error) => void) | undefined;
  readonly #closed: Promise<never>;
  #messageId = 0n;
  sessionId = 0n;
  treeId = 0;

  private constructor(socket: Socket) {
    this.socket = socket;
    this.#closed = new Promise((_, reject) => {
      this.#fail = reject;
    });
    this.#closed.catch(() => {});
    const frames = new FrameReader();
    socket.on('data', (bytes: Buffer) =>
      frames.push(
        bytes,
        () => PACKET_BYTES_MAX,
        (packet) => this.#received(packet),
      ),
    );
    socket.on('error', () => {});
    socket.on('close', () => this.#fail?.(new Error('The server has ended the connection.')));
  }

  /** Connects, signs in, and connects to the share. */
  static async connect(address: SmbAddress): Promise<SmbClient> {
    const socket = connect(address.port, address.host);
    await once(socket, 'connect');
    const client = new SmbClient(socket);
    await client.#negotiate();
    await client.#signIn(address);
    const path = `\\\\${address.host}\\${address.share}`;
    const { header } = await client.request(COMMAND.treeConnect, TreeConnectRequest, { flags: 0, path });
    client.treeId = header.treeId;
    return client;
  }

  async open(
    name: string,
    { access, share, disposition = DISPOSITION.open, ...options }: OpenOptions,
  ): Promise<FileId> {
    const { message } = await this.request(COMMAND.create, CreateRequest, {
      securityFlags: 0,
      requestedOplockLevel: 0,
      impersonationLevel: 2,
      smbCreateFlags: 0n,
      desiredAccess: access,
      fileAttributes: 0,
      shareAccess: share,
      createDisposition: disposition,
      createOptions:
        (options.isDirectory ? CREATE_OPTIONS.directoryFile : CREATE_OPTIONS.nonDirectoryFile) |
        (options.deleteOnClose ? CREATE_OPTIONS.deleteOnClose : 0),
      name,
      createContexts: Buffer.alloc(0),
    });
    return CreateResponse.decode(message, HEADER_BYTES).fileId;
  }

  /** The server has the bytes on its disk when this resolves. */
  async write(fileId: FileId, offset: bigint, data: Buffer): Promise<void> {
    const noChannel = { channel: 0, remainingBytes: 0, writeChannelInfo: Buffer.alloc(0) };
    await this.request(COMMAND.write, WriteRequest, { data, offset, fileId, ...noChannel, flags: 0 });
  }

  async close(fileId: FileId): Promise<void> {
    await this.request(COMMAND.close, CloseRequest, { flags: 0, fileId });
  }

  /** The first of as many message ids, for messages that a caller writes to the socket itself. */
  takeMessageIds(count: number): bigint {
    const first = this.#messageId;
    this.#messageId += BigInt(count);
    return first;
  }

  end(): void {
    this.socket.destroy();
  }

  /** The answer, which may be STATUS_MORE_PROCESSING_REQUIRED; any other failure is thrown. */
  async request<Body>(command: number, struct: Struct<Body>, body: Body): Promise<Answer> {
    const writer = new Writer();
    const messageId = this.takeMessageIds(1);
    writeHeader(writer, {
      creditCharge: 1,
      status: 0,
      command,
      credits: CREDITS,
      flags: 0,
      nextCommand: 0,
      messageId,
      asyncId: 0n,
      treeId: this.treeId,
      sessionId: this.sessionId,
      signature: NO_SIGNATURE,
    });
    struct.append(writer, body);
    const answered = new Promise<Answer>((resolve) => this.#waiting.set(messageId, resolve));
    this.socket.write(Buffer.concat(frame([writer.finish()])));
    const answer = await Promise.race([answered, this.#closed]);
    const { status } = answer.header;
    if (status !== STATUS.SUCCESS && status !== STATUS.MORE_PROCESSING_REQUIRED) throw new SmbFailure(status);
    return answer;
  }

  #received(message: Buffer): void {
    const header = readHeader(new Reader(message));
    // The answer itself follows.
    if (header.status === STATUS.PENDING) return;
    this.#waiting.get(header.messageId)?.({ header, message });
    this.#waiting.delete(header.messageId);
  }

  async #negotiate(): Promise<void> {
    const fields = { securityMode: SECURITY_MODE.signingEnabled, capabilities: 0, clientGuid: randomBytes(16) };
    await this.request(COMMAND.negotiate, NegotiateRequest, negotiateRequest(fields, [DIALECT_2_1], []));
  }

  async #signIn(credentials: Credentials): Promise<void> {
    const { header, message } = await this.#setUp(ntlmNegotiate());
    this.sessionId = header.sessionId;
    const { securityBuffer } = SessionSetupResponse.decode(message, HEADER_BYTES);
    await this.#setUp(ntlmAuthenticate(securityBuffer, credentials).message);
  }

  #setUp(securityBuffer: Buffer): Promise<Answer> {
    return this.request(COMMAND.sessionSetup, SessionSetupRequest, {
      flags: 0,
      securityMode: SECURITY_MODE.signingEnabled,
      capabilities: 0,
      channel: 0,
      previousSessionId: 0n,
      securityBuffer,
    });
  }
}

/** Who signs in where, for the account of a connection string: the password is the account's key. */
export function smbAddress(smbUrl: string, connectionString: string): Omit<SmbAddress, 'share'> {
  const { hostname, port } = new URL(smbUrl);
  const settingOf = (name: string) => new RegExp(`(?:^|;)${name}=([^;]*)`).exec(connectionString)?.[1] ?? '';
  return { host: hostname, port: Number(port), user: settingOf('AccountName'), password: settingOf('AccountKey') };
}
