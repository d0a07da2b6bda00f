/** A stored access policy of a container, queue or table: what signatures may leave open, and what takes them back. */
export interface AccessPolicy {
  readonly id: string;
  readonly start?: string;
  readonly expiry?: string;
  readonly permission?: string;
}
