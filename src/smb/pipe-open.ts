/** An open of a named pipe through IPC$: a client writes packets of RPC, and reads the answers one packet at a time. */
import type { OpenBase } from './opens.ts';
import type { RpcEndpoint } from './rpc/endpoint.ts';
import { SmbError } from './statuses.ts';
import type { PipeTree } from './trees.ts';
import type { FileId } from './wire/file-id.ts';

export interface PipeMessage {
  readonly data: Buffer;
  /** The rest of the packet is read next. */
  readonly isCut: boolean;
}

export class PipeOpen implements OpenBase<PipeTree> {
  readonly kind = 'pipe';
  readonly fileId: FileId;
  readonly tree: PipeTree;
  readonly #endpoint: RpcEndpoint;
  /** Packets that were not read, the first one perhaps in part. */
  readonly #unread: Buffer[] = [];
  /** The last write: writes are answered in their order. */
  #tail: Promise<unknown> = Promise.resolve();

  constructor(fileId: FileId, tree: PipeTree, endpoint: RpcEndpoint) {
    this.fileId = fileId;
    this.tree = tree;
    this.#endpoint = endpoint;
  }

  write(data: Buffer): Promise<void> {
    const written = this.#tail.then(async () => {
      // A client that never reads gets no more answers.
      if (this.#unread.length > 0 && data.length > 0) throw new SmbError('PIPE_BUSY');
      this.#unread.push(...(await this.#endpoint.receive(data)));
    });
    this.#tail = written.catch(() => undefined);
    return written;
  }

  /** Throws PIPE_EMPTY: every write has been answered, so nothing can come. */
  async read(length: number): Promise<PipeMessage> {
    await this.#tail;
    const packet = this.#unread[0];
    if (!packet) throw new SmbError('PIPE_EMPTY');
    if (packet.length <= length) {
      this.#unread.shift();
      return { data: packet, isCut: false };
    }
    this.#unread[0] = packet.subarray(length);
    return { data: packet.subarray(0, length), isCut: true };
  }

  close(): void {
    this.#unread.length = 0;
  }
}
