/** QUERY_DIRECTORY (MS-SMB2 3.3.5.18, MS-FSA 2.1.5.6.3): entries from where the search of the open is, as many as the client has room for. */
import { SEARCH_PATTERN_MAX } from '../../base/input-limits.ts';
import { listThroughHandle, parsePattern } from '../../services/file/handle-listing.ts';
import { shortNameOf } from '../../services/file/short-names.ts';
import type { OpenContext } from '../command.ts';
import type { DirectorySearch, FileOpen } from '../file-open.ts';
import { fileIndex, viewNode } from '../file-views.ts';
import { SmbError } from '../statuses.ts';
import { writeChain } from '../wire/chain.ts';
import { DIRECTORY_LEVELS, writeDirectoryEntry } from '../wire/directory-info.ts';
import {
  QUERY_DIRECTORY_FLAGS,
  type QueryDirectoryRequest,
  type QueryDirectoryResponse,
} from '../wire/query-directory.ts';

const { restartScans, returnSingleEntry, reopen } = QUERY_DIRECTORY_FLAGS;

export async function queryDirectory(
  request: QueryDirectoryRequest,
  { connection, open }: OpenContext,
): Promise<QueryDirectoryResponse> {
  const { outputBufferLength: room, flags } = request;
  const level = DIRECTORY_LEVELS.get(request.fileInformationClass);
  if (open.nodeKind !== 'directory') throw new SmbError('INVALID_PARAMETER');
  if (!level) throw new SmbError('INVALID_INFO_CLASS');
  if (room > connection.server.limits.transactBytes) throw new SmbError('INVALID_PARAMETER');
  if (room < level.size) throw new SmbError('INFO_LENGTH_MISMATCH');
  const search = searchFor(request, open);
  const entries: Buffer[] = [];
  let [used, isCut, last, sent] = [0, false, search.after, 0];
  await listThroughHandle(open.storage, open.handle, search, ({ name, found }) => {
    const isDots = name === '.' || name === '..';
    const shortName = (!isDots && shortNameOf(open.tree.shareId, found)) || '';
    const fileId = fileIndex(open.tree, found);
    const entry = writeDirectoryEntry(level, name, { ...viewNode(found), fileId, shortName });
    const start = Math.ceil(used / 8) * 8;
    isCut = start + entry.length > room;
    if (isCut) return false;
    entries.push(entry);
    used = start + entry.length;
    sent++;
    if (!isDots) last = name;
    return !(flags & returnSingleEntry);
  });
  if (entries.length === 0) {
    open.search = search;
    // The buffer ends before the first name does.
    if (isCut) throw new SmbError('INFO_LENGTH_MISMATCH');
    throw new SmbError(search.hasFound ? 'NO_MORE_FILES' : 'NO_SUCH_FILE');
  }
  open.search = { ...search, after: last, dotsSent: last === undefined ? search.dotsSent + sent : 2, hasFound: true };
  return { output: writeChain(entries) };
}

/** The first search of an open sets the pattern; a later one changes it only if it begins again. */
function searchFor({ fileName, flags }: QueryDirectoryRequest, { search }: FileOpen): DirectorySearch {
  if (search && !(flags & (restartScans | reopen))) return search;
  if (fileName === '' && search) return { ...search, after: undefined, dotsSent: 0 };
  if (fileName === '' || fileName.length > SEARCH_PATTERN_MAX || /[\\/]/.test(fileName))
    throw new SmbError('OBJECT_NAME_INVALID');
  return { pattern: parsePattern(fileName), after: undefined, dotsSent: 0, hasFound: search?.hasFound ?? false };
}
