/** A connection to an SMB server, message by message: for requests that no client sends. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { ntlmAuthenticate, ntlmNegotiate } from '../../examples/managing-concurrency/smb-sign-in.ts';
import { type CipherName, MessageCipher } from '../../src/smb/crypto/encryption.ts';
import {
  deriveCipherKeys,
  deriveSigningKey,
  EMPTY_PREAUTH_HASH,
  extendPreauthHash,
} from '../../src/smb/crypto/key-derivation.ts';
import { Signer, type SigningAlgorithm } from '../../src/smb/crypto/signing.ts';
import { DIALECT, type Dialect } from '../../src/smb/dialects.ts';
import { FrameReader, frame } from '../../src/smb/framing.ts';
import { formatStatus } from '../../src/smb/statuses.ts';
import { EmptyBody } from '../../src/smb/wire/empty.ts';
import {
  HEADER_BYTES,
  type Header,
  NO_SIGNATURE,
  PROTOCOL,
  readHeader,
  writeHeader,
} from '../../src/smb/wire/header.ts';
import {
  CONTEXT_TYPE,
  NegotiateRequest,
  negotiateRequest,
  writeAlgorithmIds,
  writeHashIds,
} from '../../src/smb/wire/negotiate.ts';
import { Reader } from '../../src/smb/wire/reader.ts';
import { SessionSetupRequest, SessionSetupResponse } from '../../src/smb/wire/session-setup.ts';
import type { Struct } from '../../src/smb/wire/struct.ts';
import { TreeConnectRequest } from '../../src/smb/wire/tree-connect.ts';
import { Writer } from '../../src/smb/wire/writer.ts';

export interface SmbAnswer {
  readonly header: Header;
  /** As STATUS_SUCCESS. */
  readonly status: string;
  readonly bytes: Buffer;
  decode<T>(struct: Struct<T>): T;
}

export interface SmbMessage {
  readonly command: number;
  readonly body: Buffer;
  readonly header?: Partial<Header>;
  /** By default as the session does. */
  readonly sign?: boolean;
}

/** What a client offers beside its dialects. */
export interface NegotiateOptions {
  readonly securityMode?: number;
  /** Of 3.1.1, by the ids of MS-SMB2 2.2.3.1.2 and 2.2.3.1.7. */
  readonly cipher?: CipherName | undefined;
  readonly signing?: SigningAlgorithm | undefined;
}

/** Changes what a client sends to sign in. */
export interface SignInOptions {
  readonly securityMode?: number;
  /** Of SESSION_SETUP; 1 binds the connection to the session whose id and signer it has. */
  readonly flags?: number;
  /** Of either message, after it was made. */
  readonly changeToken?: (token: Buffer) => Buffer;
  /** Of what the client's proof covers. */
  readonly changeProved?: (part: Buffer) => Buffer;
}

const CIPHER_IDS: Readonly<Record<CipherName, number>> = {
  'aes-128-ccm': 1,
  'aes-128-gcm': 2,
  'aes-256-ccm': 3,
  'aes-256-gcm': 4,
};
const SIGNING_IDS: Readonly<Record<SigningAlgorithm, number>> = { 'hmac-sha256': 0, 'aes-cmac': 1, 'aes-gmac': 2 };

export class SmbConnection {
  readonly #socket: Socket;
  readonly #answers: Buffer[] = [];
  readonly #frames = new FrameReader();
  #arrived: (() => void) | undefined;
  isClosed = false;
  sessionId = 0n;
  treeId = 0;
  signer: Signer | undefined;
  /** Of the session; undefined: it cannot encrypt. */
  cipher: MessageCipher | undefined;
  /** Whether packets are encrypted. */
  isEncrypting = false;
  #dialect: Dialect = 0x311;
  #cipherName: CipherName | undefined;
  #signing: SigningAlgorithm = 'aes-cmac';
  #preauthHash: Buffer = EMPTY_PREAUTH_HASH;
  nextMessageId = 0n;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on('data', (bytes) => {
      this.#frames.push(
        bytes,
        () => 16_000_000,
        (packet) => this.#answers.push(packet),
      );
      this.#arrived?.();
    });
    socket.on('error', () => undefined);
    socket.on('close', () => {
      this.isClosed = true;
      this.#arrived?.();
    });
  }

  /** @param localAddress which the server sees as the client's */
  static async open(smbUrl: string, localAddress?: string): Promise<SmbConnection> {
    const { hostname, port } = new URL(smbUrl);
    const socket = connect({ port: Number(port), host: hostname, ...(localAddress && { localAddress }) });
    await once(socket, 'connect');
    return new SmbConnection(socket);
  }

  close(): void {
    this.#socket.destroy();
  }

  /** Answers stay on their way. */
  stopReading(): void {
    this.#socket.pause();
  }

  /** Bytes as they are. */
  sendBytes(bytes: Buffer): void {
    this.#socket.write(bytes);
  }

  sendPacket(packet: Buffer): void {
    const parts = this.isEncrypting ? this.cipher!.encrypt(packet, this.sessionId) : [packet];
    this.sendBytes(Buffer.concat(frame(parts)));
  }

  /** Resolves once the server has ended the connection. */
  async ended(): Promise<void> {
    while (!this.isClosed) await this.#wait();
  }

  /** The messages of the next packet; undefined: the server has ended the connection. */
  async receive(): Promise<SmbAnswer[] | undefined> {
    while (this.#answers.length === 0) {
      if (this.isClosed) return undefined;
      await this.#wait();
    }
    const packet = this.#answers.shift()!;
    const isEncrypted = packet.readUInt32LE(0) === PROTOCOL.transform;
    return splitAnswers(isEncrypted ? this.cipher!.decrypt(packet) : packet);
  }

  async request<T>(command: number, struct: Struct<T>, value: T, header: Partial<Header> = {}): Promise<SmbAnswer> {
    return (await this.send([{ command, body: encodeBody(struct, value), header }]))[0]!;
  }

  /** As one packet. */
  async send(messages: readonly SmbMessage[]): Promise<SmbAnswer[]> {
    this.sendPacket(this.encode(messages));
    const answers = await this.receive();
    if (!answers) throw new Error('the server has ended the connection');
    return answers;
  }

  encode(messages: readonly SmbMessage[]): Buffer {
    const parts = messages.map(({ command, body, header = {}, sign = this.signer !== undefined }, index) => {
      const isLast = index === messages.length - 1;
      const length = isLast ? HEADER_BYTES + body.length : Math.ceil((HEADER_BYTES + body.length) / 8) * 8;
      const writer = new Writer();
      writeHeader(writer, {
        ...{ creditCharge: 1, status: 0, command, credits: 10, flags: 0, nextCommand: isLast ? 0 : length },
        ...{ messageId: header.messageId ?? this.nextMessageId++, asyncId: 0n, treeId: this.treeId },
        ...{ sessionId: this.sessionId, signature: NO_SIGNATURE, ...header },
      });
      writer.bytes(body);
      writer.zeros(length - writer.length);
      const bytes = writer.finish();
      if (sign) this.signer?.sign(bytes);
      return bytes;
    });
    return Buffer.concat(parts);
  }

  /** The client speaks the last of the dialects, which is the server's choice if it is the newest. */
  async negotiate(
    dialects: readonly Dialect[] = [DIALECT.smb311],
    { cipher, signing, ...fields }: NegotiateOptions = {},
  ): Promise<SmbAnswer> {
    const contexts = [
      { type: CONTEXT_TYPE.preauthIntegrity, data: writeHashIds([1], Buffer.alloc(32)) },
      ...(cipher ? [{ type: CONTEXT_TYPE.encryption, data: writeAlgorithmIds([CIPHER_IDS[cipher]]) }] : []),
      ...(signing ? [{ type: CONTEXT_TYPE.signing, data: writeAlgorithmIds([SIGNING_IDS[signing]]) }] : []),
    ];
    const request = negotiateRequest(
      { securityMode: 1, capabilities: 0x7f, clientGuid: Buffer.alloc(16, 9), ...fields },
      dialects,
      dialects.includes(DIALECT.smb311) ? contexts : [],
    );
    const packet = this.encode([{ command: 0, body: encodeBody(NegotiateRequest, request) }]);
    this.sendPacket(packet);
    const answers = await this.receive();
    if (!answers) throw new Error('the server has ended the connection');
    const [answer] = answers;
    this.#dialect = dialects.at(-1)!;
    this.#signing = this.#dialect === DIALECT.smb210 ? 'hmac-sha256' : 'aes-cmac';
    this.#cipherName = this.#dialect === DIALECT.smb210 ? undefined : 'aes-128-ccm';
    if (this.#dialect === DIALECT.smb311) {
      this.#signing = signing ?? 'aes-cmac';
      this.#cipherName = cipher;
    }
    this.#preauthHash = extendPreauthHash(extendPreauthHash(EMPTY_PREAUTH_HASH, packet), answer!.bytes);
    return answer!;
  }

  /** By NTLM, without SPNEGO unless a token is changed to it. Returns the last answer. */
  async signIn(user: string, key: string, options: SignInOptions = {}): Promise<SmbAnswer> {
    const { securityMode = 1, flags = 0, changeToken = (token) => token, changeProved } = options;
    const first = await this.#setUp(changeToken(ntlmNegotiate()), securityMode, flags);
    if (first.status !== 'STATUS_MORE_PROCESSING_REQUIRED') return first;
    this.sessionId = first.header.sessionId;
    const { securityBuffer } = first.decode(SessionSetupResponse);
    // In SPNEGO, a server that does not get the token of its choice asks for it.
    const challengeAt = securityBuffer.indexOf('NTLMSSP');
    if (challengeAt < 0) return first;
    const challenge = securityBuffer.subarray(challengeAt);
    const proof = ntlmAuthenticate(challenge, { user, password: key }, changeProved);
    const last = await this.#setUp(changeToken(proof.message), securityMode, flags);
    if (last.status !== 'STATUS_SUCCESS') return last;
    if (!this.signer) this.#deriveKeys(proof.sessionKey);
    return last;
  }

  #deriveKeys(sessionKey: Buffer): void {
    this.signer = new Signer(this.#signing, deriveSigningKey(this.#dialect, sessionKey, this.#preauthHash));
    if (!this.#cipherName) return;
    const keys = deriveCipherKeys(this.#dialect, this.#cipherName, sessionKey, this.#preauthHash);
    // The keys are named from the server's side.
    const { encryption: decryption, decryption: encryption } = keys;
    this.cipher = new MessageCipher(this.#cipherName, { encryption, decryption });
  }

  async connectTree(share: string): Promise<SmbAnswer> {
    const answer = await this.request(3, TreeConnectRequest, { flags: 0, path: `\\\\server\\${share}` });
    this.treeId = answer.header.treeId;
    return answer;
  }

  echo(): Promise<SmbAnswer> {
    return this.request(13, EmptyBody, {});
  }

  async #setUp(securityBuffer: Buffer, securityMode: number, flags: number): Promise<SmbAnswer> {
    const fields = { flags, securityMode, capabilities: 0, channel: 0, securityBuffer, previousSessionId: 0n };
    const packet = this.encode([{ command: 1, body: encodeBody(SessionSetupRequest, fields) }]);
    this.sendPacket(packet);
    const answers = await this.receive();
    if (!answers) throw new Error('the server has ended the connection');
    const [answer] = answers;
    this.#preauthHash = extendPreauthHash(this.#preauthHash, packet);
    if (answer!.status !== 'STATUS_SUCCESS') this.#preauthHash = extendPreauthHash(this.#preauthHash, answer!.bytes);
    return answer!;
  }

  #wait(): Promise<void> {
    return new Promise((resolve) => {
      this.#arrived = resolve;
    });
  }
}

/** Offsets count from the header. */
export function encodeBody<T>(struct: Struct<T>, value: T): Buffer {
  const writer = new Writer();
  writer.zeros(HEADER_BYTES);
  struct.append(writer, value);
  return writer.finish().subarray(HEADER_BYTES);
}

function splitAnswers(packet: Buffer): SmbAnswer[] {
  const answers: SmbAnswer[] = [];
  for (let start = 0; ; ) {
    const header = readHeader(new Reader(packet, start));
    const bytes = packet.subarray(start, header.nextCommand === 0 ? packet.length : start + header.nextCommand);
    const decode = <T>(struct: Struct<T>) => struct.decode(bytes, HEADER_BYTES);
    answers.push({ header, status: formatStatus(header.status), bytes, decode });
    if (header.nextCommand === 0) return answers;
    start += header.nextCommand;
  }
}
