/** A stored access policy: the fields that a SAS of the container, queue or table may leave out. Its removal revokes the SAS. */
export interface AccessPolicy {
  readonly id: string;
  readonly start?: string;
  readonly expiry?: string;
  readonly permission?: string;
}
