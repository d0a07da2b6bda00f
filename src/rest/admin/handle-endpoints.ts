/** Management endpoints for the handles that clients have open, used by `holdfast handles`. */
import { formatIso7 } from '../../base/time.ts';
import type { AccountDirectory, KnownAccount } from '../../services/accounts/accounts.ts';
import { asStorageError, commonErrors, errorFactory } from '../../services/common/errors.ts';
import type { Storage } from '../../services/common/storage.ts';
import {
  forceCloseHandles,
  type HandlesInput,
  type ListedHandle,
  listHandles,
} from '../../services/file/handle-lists.ts';
import { listShares } from '../../services/file/list-shares.ts';
import { accessNames } from '../../services/file/opens.ts';
import { jsonReply, requireToken } from './guard.ts';
import type { ManagementEndpoints } from './management-endpoints.ts';

/** The JSON form of a handle; scripts rely on it. */
export interface ShownHandle {
  /** A number of 64 bits, which JSON's numbers do not hold. */
  readonly id: string;
  readonly share: string;
  readonly path: string;
  readonly access: readonly string[];
  readonly shares: readonly string[];
  readonly client: string;
  readonly session: string;
  readonly opened: string;
}

interface HandleEndpointOptions {
  readonly accounts: Pick<AccountDirectory, 'find'>;
  readonly storageFor: (account: KnownAccount) => Storage;
  readonly token: string;
}

const fail = errorFactory(commonErrors);
const PATH = '/_holdfast/handles';

export function handleEndpoints({ accounts, storageFor, token }: HandleEndpointOptions): ManagementEndpoints {
  const open = ({ account = '' }: Readonly<Record<string, string>>): Storage => {
    const found = accounts.find(account);
    if (!found) throw fail('ResourceNotFound', undefined, `There is no account ${account}.`);
    return storageFor(found);
  };
  return {
    [`GET ${PATH}`]: requireToken(token, async ({ query }) => {
      const storage = open(query);
      const shares = query.share === undefined ? await shareNames(storage) : [query.share];
      const handles: ShownHandle[] = [];
      for (const share of shares) handles.push(...(await handlesBelow(storage, share, query.path)));
      return jsonReply(200, { handles });
    }),
    [`DELETE ${PATH}`]: requireToken(token, async ({ query }) => {
      const { share, id } = query;
      if (share === undefined || id === undefined)
        throw fail('MissingRequiredQueryParameter', { QueryParameterName: share === undefined ? 'share' : 'id' });
      const storage = open(query);
      let closed = 0;
      for (let input = { ...wholeTree(share, query.path), handleId: id, isRecursive: query.recursive === 'true' }; ; ) {
        const page = await forceCloseHandles(storage, input).catch(explainRefusal);
        closed += page.closed;
        if (page.nextMarker === '') return jsonReply(200, { closed });
        input = { ...input, marker: page.nextMarker };
      }
    }),
  };
}

/** The service names headers of REST, which no command has. */
function explainRefusal(error: unknown): never {
  const code = asStorageError(error)?.code;
  if (code !== 'InvalidHeaderValue') throw error;
  throw fail('InvalidInput', undefined, 'An id is a number, and only a directory has something below it.');
}

const wholeTree = (share: string, path = ''): HandlesInput => ({
  ...{ share, path, keepsTrailingDots: true, snapshot: undefined },
  ...{ isRecursive: true, marker: undefined },
});

async function handlesBelow(storage: Storage, share: string, path: string | undefined): Promise<ShownHandle[]> {
  const found: ShownHandle[] = [];
  let input = wholeTree(share, path);
  for (;;) {
    const { handles, nextMarker } = await listHandles(storage, { ...input, resultsMax: undefined });
    found.push(...handles.map((handle) => show(share, handle)));
    if (nextMarker === '') return found;
    input = { ...input, marker: nextMarker };
  }
}

function show(
  share: string,
  { id, path, access, share: shareMode, ip, name, session, opened }: ListedHandle,
): ShownHandle {
  return {
    ...{ id: id.toString(), share, path, access: accessNames(access), shares: accessNames(shareMode) },
    ...{ client: name === undefined ? ip : `${name} (${ip})`, session, opened: formatIso7(opened) },
  };
}

async function shareNames(storage: Storage): Promise<string[]> {
  const names: string[] = [];
  let marker: string | undefined;
  do {
    const input = { prefix: undefined, marker, resultsMax: undefined };
    marker = await listShares(storage, input, (shares) => names.push(...shares.map(({ name }) => name)));
  } while (marker);
  return names;
}
