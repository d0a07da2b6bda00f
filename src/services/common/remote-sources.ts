/** Reads of other servers, as the services see them; rest/outgoing has the client. */

/** What the answer says of the resource. */
export interface RemoteHead {
  /** Of the whole resource. */
  readonly length: number;
  /** Without quotes. */
  readonly etag: string | undefined;
  /** Ticks. */
  readonly modified: bigint | undefined;
  readonly content: {
    readonly contentType?: string | undefined;
    readonly contentEncoding?: string | undefined;
    readonly contentLanguage?: string | undefined;
    readonly contentDisposition?: string | undefined;
    readonly cacheControl?: string | undefined;
    readonly contentMd5?: string | undefined;
  };
  readonly metadata: readonly (readonly [name: string, value: string])[];
  /** Of a blob of a storage account: BlockBlob, AppendBlob or PageBlob. */
  readonly blobType?: string | undefined;
  /** Of an append blob. */
  readonly blocks?: number | undefined;
  readonly isSealed?: true | undefined;
  /** Of a page blob. */
  readonly sequenceNumber?: bigint | undefined;
}

export interface RemoteRead {
  readonly head: RemoteHead;
  /** The bytes that were requested. They fail with a StorageError. To be called once. */
  bytes(): AsyncIterable<Uint8Array>;
  /** Ends the connection. */
  close(): void;
}

export interface RemoteRequest {
  /** The whole URL, with its signature. */
  readonly url: string;
  readonly authorization?: string | undefined;
  /** The version of Azure's protocol, for a source that needs it. */
  readonly version?: string | undefined;
  /** The bytes that are wanted, `to` included; undefined: all. */
  readonly range?: { readonly from: number; readonly to?: number | undefined } | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface PageListRequest extends Pick<RemoteRequest, 'url' | 'signal'> {
  readonly range: { readonly from: number; readonly to: number };
  /** Ticks: what changed since this snapshot; undefined: all that was written. */
  readonly since: bigint | undefined;
  readonly limit: number;
}

export interface PageList {
  /** Without quotes. */
  readonly etag: string | undefined;
  /** The first ones, in order; `to` excluded. */
  readonly ranges: readonly { readonly from: number; readonly to: number; readonly isWritten: boolean }[];
  /** No others follow. */
  readonly isAll: boolean;
}

export interface RemoteSources {
  /**
   * Sends the request and waits for the head of the answer.
   * @throws StorageError with the status of the source, or 502 if there is no answer
   */
  open(request: RemoteRequest): Promise<RemoteRead>;
  /** Get Page Ranges. Fails as `open` does. */
  listPages(request: PageListRequest): Promise<PageList>;
}
