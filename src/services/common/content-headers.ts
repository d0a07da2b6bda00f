/** The HTTP headers that a blob or a file keeps for its readers. */
export interface ContentHeaders {
  readonly contentType?: string | undefined;
  readonly contentEncoding?: string | undefined;
  readonly contentLanguage?: string | undefined;
  readonly contentDisposition?: string | undefined;
  readonly cacheControl?: string | undefined;
  readonly contentMd5?: string | undefined;
}
