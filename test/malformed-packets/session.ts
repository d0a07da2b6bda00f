/** Sessions of every dialect and protection for the fuzzer, a program of JavaScript, which changes packets within their protection. */
import { encodeElement } from '../../src/smb/auth/der.ts';
import type { CipherName } from '../../src/smb/crypto/encryption.ts';
import type { SigningAlgorithm } from '../../src/smb/crypto/signing.ts';
import { DIALECT, type Dialect } from '../../src/smb/dialects.ts';
import { frame } from '../../src/smb/framing.ts';
import { CREATE_OPTIONS, CreateRequest, CreateResponse } from '../../src/smb/wire/create.ts';
import { FileId } from '../../src/smb/wire/file-id.ts';
import { type SignInOptions, SmbConnection } from '../support/smb-connection.ts';
import { messagesOf } from './message-fields.mjs';

export { ACCESS, DISPOSITION, SHARE, SmbClient } from '../../examples/managing-concurrency/smb-client.ts';

interface Kind {
  readonly dialect: Dialect;
  readonly protection: 'off' | 'signed' | 'encrypted';
  readonly signing?: SigningAlgorithm;
  readonly cipher?: CipherName;
}

const { smb210, smb300, smb302, smb311 } = DIALECT;

export const kinds: readonly Kind[] = [
  ...[smb210, smb300, smb302, smb311].map((dialect): Kind => ({ dialect, protection: 'off' })),
  ...[smb210, smb300, smb302].map((dialect): Kind => ({ dialect, protection: 'signed' })),
  ...(['hmac-sha256', 'aes-cmac', 'aes-gmac'] as const).map(
    (signing): Kind => ({ dialect: smb311, protection: 'signed', signing }),
  ),
  ...[smb300, smb302].map((dialect): Kind => ({ dialect, protection: 'encrypted' })),
  ...(['aes-128-ccm', 'aes-128-gcm', 'aes-256-ccm', 'aes-256-gcm'] as const).map(
    (cipher): Kind => ({ dialect: smb311, protection: 'encrypted', cipher }),
  ),
];

export interface FuzzAddress {
  readonly port: number;
  readonly share: string;
  readonly user: string;
  readonly password: string;
}

const CREDITS = 512;
const ALL_ACCESS = 0x1f_01ff;
const ALL_SHARED = 7;
const OPEN_IF = 3;

/** A session with two trees, the share and IPC$; and three opens: a file, the root directory, and srvsvc. */
export class FuzzSession {
  readonly connection: SmbConnection;
  readonly #kind: Kind;
  readonly #fileName: string;
  treeId = 0;
  pipeTreeId = 0;
  fileIds: Buffer[] = [];
  pipeId: Buffer = Buffer.alloc(0);

  static async open(address: FuzzAddress, kind: Kind, fileName: string): Promise<FuzzSession> {
    const connection = await negotiated(address.port, kind);
    await connection.signIn(address.user, address.password);
    connection.isEncrypting = kind.protection === 'encrypted';
    if (kind.protection === 'off') connection.signer = undefined;
    const session = new FuzzSession(connection, kind, fileName);
    await connection.connectTree('IPC$');
    session.pipeTreeId = connection.treeId;
    session.pipeId = await session.#create('srvsvc', 0);
    await connection.connectTree(address.share);
    session.treeId = connection.treeId;
    await session.openFiles();
    return session;
  }

  private constructor(connection: SmbConnection, kind: Kind, fileName: string) {
    this.connection = connection;
    this.#kind = kind;
    this.#fileName = fileName;
  }

  get ids() {
    const { nextMessageId, sessionId } = this.connection;
    const { treeId, pipeTreeId, fileIds, pipeId } = this;
    return { nextMessageId, sessionId, treeId, pipeTreeId, fileIds, pipeId };
  }

  /** Also after a packet has closed or deleted what was open. */
  async openFiles(): Promise<void> {
    this.connection.treeId = this.treeId;
    this.fileIds = [await this.#create(this.#fileName, 0), await this.#create('', CREATE_OPTIONS.directoryFile)];
  }

  async #create(name: string, createOptions: number): Promise<Buffer> {
    const answer = await this.connection.request(
      5,
      CreateRequest,
      {
        ...{ securityFlags: 0, requestedOplockLevel: 0, impersonationLevel: 2, smbCreateFlags: 0n, fileAttributes: 0 },
        ...{ desiredAccess: ALL_ACCESS, shareAccess: ALL_SHARED, createDisposition: OPEN_IF, createOptions, name },
        createContexts: Buffer.alloc(0),
      },
      { credits: CREDITS },
    );
    if (answer.status !== 'STATUS_SUCCESS') throw new Error(`CREATE of "${name}": ${answer.status}`);
    return FileId.encode(answer.decode(CreateResponse).fileId);
  }

  /** What is sent for a packet: its messages are signed one by one, or encrypted together. */
  protect(packet: Buffer): Buffer {
    const { connection } = this;
    if (this.#kind.protection === 'signed') {
      for (const { start, end } of messagesOf(packet)) connection.signer!.sign(packet.subarray(start, end));
    }
    return this.isEncrypted ? Buffer.concat(connection.cipher!.encrypt(packet, connection.sessionId)) : packet;
  }

  get isEncrypted(): boolean {
    return this.#kind.protection === 'encrypted';
  }

  send(bytes: Buffer): void {
    this.connection.sendBytes(Buffer.concat(frame([bytes])));
  }
}

async function negotiated(port: number, { dialect, ...options }: Kind, localAddress?: string) {
  const connection = await SmbConnection.open(`smb://127.0.0.1:${port}`, localAddress);
  await connection.negotiate([dialect], options);
  return connection;
}

export interface ChangedSignIn extends SignInOptions {
  readonly localAddress: string;
  /** In SPNEGO. */
  readonly isWrapped: boolean;
}

/** The status of the last answer; undefined: the server ended the connection. */
export async function signInChanged(
  { port, user, password }: FuzzAddress,
  kind: Kind,
  { localAddress, isWrapped, changeToken, ...options }: ChangedSignIn,
): Promise<string | undefined> {
  const connection = await negotiated(port, kind, localAddress);
  try {
    let isFirst = true;
    const change = (token: Buffer) => {
      const whole = isWrapped ? (isFirst ? wrapFirst(token) : wrapSecond(token)) : token;
      isFirst = false;
      return changeToken!(whole);
    };
    return (await connection.signIn(user, password, { ...options, changeToken: change })).status;
  } catch (error) {
    if (connection.isClosed) return undefined;
    throw error;
  } finally {
    connection.close();
  }
}

const SPNEGO_OID = Buffer.from('06062b0601050502', 'hex');
const NTLM_OID = Buffer.from('060a2b06010401823702020a', 'hex');

function wrapFirst(token: Buffer): Buffer {
  const mechanisms = encodeElement(0xa0, encodeElement(0x30, NTLM_OID));
  const fields = encodeElement(0x30, mechanisms, encodeElement(0xa2, encodeElement(0x04, token)));
  return encodeElement(0x60, SPNEGO_OID, encodeElement(0xa0, fields));
}

function wrapSecond(token: Buffer): Buffer {
  return encodeElement(0xa1, encodeElement(0x30, encodeElement(0xa2, encodeElement(0x04, token))));
}
