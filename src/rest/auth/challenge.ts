/** What a 401 asks the client to bring. Microsoft's clients parse it, and some fail on any other form. */

/** The authority of any tenant: the server itself belongs to none. */
const ANY_TENANT = 'common';

export function bearerChallenge(tenant = ANY_TENANT): string {
  const authority = `https://login.microsoftonline.com/${tenant}/oauth2/authorize`;
  return `Bearer authorization_uri=${authority} resource_id=https://storage.azure.com`;
}
