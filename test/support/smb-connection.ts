/** A connection to an SMB server, message by message: for requests that no client sends. */
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { hashPassword, responseKey } from '../../src/smb/auth/ntlm.ts';
import { NTLM_FLAG, NTLM_SIGNATURE, NtlmAuthenticate, NtlmChallenge } from '../../src/smb/auth/ntlm-messages.ts';
import { deriveSigningKey, EMPTY_PREAUTH_HASH, extendPreauthHash } from '../../src/smb/crypto/key-derivation.ts';
import { Signer } from '../../src/smb/crypto/signing.ts';
import type { Dialect } from '../../src/smb/dialects.ts';
import { FrameReader } from '../../src/smb/framing.ts';
import { formatStatus } from '../../src/smb/statuses.ts';
import { EmptyBody } from '../../src/smb/wire/empty.ts';
import { HEADER_BYTES, type Header, NO_SIGNATURE, readHeader, writeHeader } from '../../src/smb/wire/header.ts';
import { NegotiateRequest, negotiateRequest, writeHashIds } from '../../src/smb/wire/negotiate.ts';
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

export class SmbConnection {
  readonly #socket: Socket;
  readonly #answers: Buffer[] = [];
  readonly #frames = new FrameReader();
  #arrived: (() => void) | undefined;
  isClosed = false;
  sessionId = 0n;
  treeId = 0;
  signer: Signer | undefined;
  #dialect: Dialect = 0x311;
  #preauthHash: Buffer = EMPTY_PREAUTH_HASH;
  #messageId = 0n;

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

  static async open(smbUrl: string): Promise<SmbConnection> {
    const { hostname, port } = new URL(smbUrl);
    const socket = connect(Number(port), hostname);
    await once(socket, 'connect');
    return new SmbConnection(socket);
  }

  close(): void {
    this.#socket.destroy();
  }

  /** Bytes as they are. */
  sendBytes(bytes: Buffer): void {
    this.#socket.write(bytes);
  }

  sendPacket(packet: Buffer): void {
    const prefix = Buffer.alloc(4);
    prefix.writeUIntBE(packet.length, 1, 3);
    this.sendBytes(Buffer.concat([prefix, packet]));
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
    return splitAnswers(this.#answers.shift()!);
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
        ...{ messageId: header.messageId ?? this.#nextMessageId(), asyncId: 0n, treeId: this.treeId },
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

  async negotiate(dialects: readonly Dialect[] = [0x311], fields: { securityMode?: number } = {}): Promise<SmbAnswer> {
    const request = negotiateRequest(
      { securityMode: 1, capabilities: 0x7f, clientGuid: Buffer.alloc(16, 9), ...fields },
      dialects,
      dialects.includes(0x311) ? [{ type: 1, data: writeHashIds([1], Buffer.alloc(32)) }] : [],
    );
    const packet = this.encode([{ command: 0, body: encodeBody(NegotiateRequest, request) }]);
    this.sendPacket(packet);
    const answer = (await this.receive())![0]!;
    this.#dialect = dialects.at(-1)!;
    this.#preauthHash = extendPreauthHash(extendPreauthHash(EMPTY_PREAUTH_HASH, packet), answer.bytes);
    return answer;
  }

  /** By NTLM without SPNEGO. Returns the last answer. */
  async signIn(user: string, key: string, { securityMode = 1 } = {}): Promise<SmbAnswer> {
    const flags = NTLM_FLAG.unicode | NTLM_FLAG.extendedSessionSecurity | NTLM_FLAG.key128;
    const negotiate = Buffer.concat([NTLM_SIGNATURE, numbers(1, flags), Buffer.alloc(16)]);
    const first = await this.#setUp(negotiate, securityMode);
    if (first.status !== 'STATUS_MORE_PROCESSING_REQUIRED') return first;
    this.sessionId = first.header.sessionId;
    const challenge = NtlmChallenge.decode(first.decode(SessionSetupResponse).securityBuffer);
    const clientPart = Buffer.concat([numbers(0x101), Buffer.alloc(24), challenge.targetInfo, Buffer.alloc(4)]);
    const userKey = responseKey(hashPassword(key), user, 'ANY');
    const proof = hmacMd5(userKey, challenge.serverChallenge, clientPart);
    const proved = NtlmAuthenticate.encode({
      ...{ signature: NTLM_SIGNATURE, messageType: 3, lmResponse: Buffer.alloc(24), domain: 'ANY', user, flags },
      ...{ ntResponse: Buffer.concat([proof, clientPart]), workstation: '', encryptedSessionKey: Buffer.alloc(0) },
    });
    const last = await this.#setUp(proved, securityMode);
    if (last.status !== 'STATUS_SUCCESS') return last;
    const signingKey = deriveSigningKey(this.#dialect, hmacMd5(userKey, proof), this.#preauthHash);
    this.signer ??= new Signer(this.#dialect === 0x210 ? 'hmac-sha256' : 'aes-cmac', signingKey);
    return last;
  }

  async connectTree(share: string): Promise<SmbAnswer> {
    const answer = await this.request(3, TreeConnectRequest, { flags: 0, path: `\\\\server\\${share}` });
    this.treeId = answer.header.treeId;
    return answer;
  }

  echo(): Promise<SmbAnswer> {
    return this.request(13, EmptyBody, {});
  }

  async #setUp(securityBuffer: Buffer, securityMode: number): Promise<SmbAnswer> {
    const fields = { flags: 0, securityMode, capabilities: 0, channel: 0, securityBuffer, previousSessionId: 0n };
    const packet = this.encode([{ command: 1, body: encodeBody(SessionSetupRequest, fields) }]);
    this.sendPacket(packet);
    const answers = await this.receive();
    if (!answers) throw new Error('the server has ended the connection');
    const [answer] = answers;
    this.#preauthHash = extendPreauthHash(this.#preauthHash, packet);
    if (answer!.status !== 'STATUS_SUCCESS') this.#preauthHash = extendPreauthHash(this.#preauthHash, answer!.bytes);
    return answer!;
  }

  #nextMessageId(): bigint {
    return this.#messageId++;
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

function numbers(...values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(4 * values.length);
  for (const [index, value] of values.entries()) bytes.writeUInt32LE(value >>> 0, 4 * index);
  return bytes;
}

function hmacMd5(key: Buffer, ...parts: readonly Buffer[]): Buffer {
  return createHmac('md5', key).update(Buffer.concat(parts)).digest();
}
