/** Access record: what is known of a request once it is answered. Logs and metrics are made of these records. */
export interface AccessRecord {
  /** By name. */
  readonly account: string;
  readonly service: 'blob' | 'queue' | 'table' | 'file';
  /** Its name in Storage Analytics; undefined if the request failed before it was routed. */
  readonly operation: string | undefined;
  readonly kind: RequestKind;
  /** The kind of credentials in the request, valid or not. */
  readonly by: 'key' | 'token' | 'SAS' | 'anonymous';
  /** Undefined: the client disconnected before it could be answered. */
  readonly status: number | undefined;
  /** Of the error. */
  readonly code: string | undefined;
  /** x-ms-version. */
  readonly version: string;
  readonly started: bigint;
  /** From the first byte of the request to the last of the answer. */
  readonly milliseconds: number;
  /** Without the time spent waiting for the client. */
  readonly serverMilliseconds: number;
  readonly id: string;
  /** Without the signature of a SAS. */
  readonly url: string;
  /** /account/container/blob */
  readonly objectKey: string;
  /** With the port. */
  readonly from: string;
  readonly headerBytes: number;
  /** Of the bodies. */
  readonly bytesIn: number;
  readonly bytesOut: number;
  readonly contentLength: string | undefined;
  readonly sentMd5: string | undefined;
  readonly md5: string | undefined;
  readonly etag: string | undefined;
  /** As HTTP writes dates. */
  readonly lastModified: string | undefined;
  /** Name=value each. */
  readonly conditions: readonly string[];
  readonly userAgent: string | undefined;
  readonly referrer: string | undefined;
  readonly clientRequestId: string | undefined;
}

export type RequestKind = 'read' | 'write' | 'delete';
