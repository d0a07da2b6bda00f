/** A stored access policy of a container, queue or table: the fields that a SAS may leave out; removing the policy revokes the SAS. */
export interface AccessPolicy {
  readonly id: string;
  readonly start?: string;
  readonly expiry?: string;
  readonly permission?: string;
}
