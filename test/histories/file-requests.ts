/** Requests of a history on files: a file is created with all its bytes, read, deleted and leased. */
import type { Request } from './history.ts';
import { attempt, bodyOf, type Outcome, outcomeOf, type Sent, type Wire } from './requests.ts';

export const SHARE = 'histories';
const DIRECTORY = 'below';
/** Since this version Create File takes bytes. */
const VERSION = '2026-02-06';

/** What the File service says where the model says what blobs do. */
export const FILE_CODES: Readonly<Record<string, string>> = {
  BlobNotFound: 'ResourceNotFound',
  LeaseIdMismatchWithBlobOperation: 'LeaseIdMismatchWithFileOperation',
  LeaseNotPresentWithBlobOperation: 'LeaseNotPresentWithFileOperation',
  LeaseLost: 'LeaseNotPresentWithFileOperation',
};

export async function performOnFile(file: string, request: Request, wire: Wire): Promise<Outcome> {
  return attempt(wire, sendingOf(file, request, wire), (answer) => outcomeOf(request, answer, wire));
}

export async function makeShare({ send }: Wire['connection']): Promise<void> {
  for (const target of [`/${SHARE}?restype=share`, `/${SHARE}/${DIRECTORY}?restype=directory`]) {
    const { status, body } = await send('PUT', target);
    if (status !== 201 && status !== 409) throw new Error(`${target} was answered ${status}: ${body}`);
  }
}

function sendingOf(file: string, request: Request, { lengthOf }: Wire): Sent {
  const target = `/${SHARE}/${DIRECTORY}/${file}`;
  const held: Record<string, string> =
    'leaseId' in request && request.leaseId ? { 'x-ms-lease-id': request.leaseId } : {};
  switch (request.kind) {
    case 'put': {
      const body = bodyOf(request.content, lengthOf(request.content));
      const own = { 'x-ms-type': 'file', 'x-ms-content-length': String(body.length), 'x-ms-version': VERSION };
      return ['PUT', target, { headers: { ...own, ...held }, body }];
    }
    case 'get':
      return ['GET', target, { headers: held }];
    case 'delete':
      return ['DELETE', target, { headers: held }];
    case 'acquire': {
      const asked = { 'x-ms-lease-duration': '-1', 'x-ms-proposed-lease-id': request.leaseId };
      return leasing(target, 'acquire', asked);
    }
    case 'change':
      return leasing(target, 'change', { ...held, 'x-ms-proposed-lease-id': request.newId });
    case 'release':
    case 'break':
      return leasing(target, request.kind, held);
    default:
      throw new Error(`Files have no ${request.kind}.`);
  }
}

function leasing(target: string, action: string, headers: Record<string, string>): Sent {
  return ['PUT', `${target}?comp=lease`, { headers: { 'x-ms-lease-action': action, ...headers } }];
}
