import type { ManagementEndpoints } from './management-endpoints.ts';

/** The certificate of the server's own authority, for those who are to trust it: it is no secret. */
export function certificateEndpoint(pem: string | undefined): ManagementEndpoints {
  if (pem === undefined) return {};
  return {
    'GET /_holdfast/certificate': async () => ({
      status: 200,
      headers: { 'Content-Type': 'application/x-pem-file' },
      body: pem,
    }),
  };
}
