/** `holdfast handles`: lists and closes what clients of a running server have open. */
import { resolve } from 'node:path';
import type { ShownHandle } from '../rest/admin/handle-endpoints.ts';
import { StartError } from '../server/config.ts';
import { DEVELOPMENT_ACCOUNT } from '../services/common/account-rows.ts';
import { type RunningServer, withRunningServer } from './admin-client.ts';
import type { HandlesCommand } from './handles-flags.ts';

const PATH = '/_holdfast/handles';

/** Returns the text to print. */
export function runHandles(command: HandlesCommand): Promise<string> {
  const folder = resolve(command.location);
  return withRunningServer(folder, async (server) => {
    const account = command.account ?? (await onlyAccount(server));
    const place = command.place && { share: command.place.share, path: command.place.path };
    const query = { account, ...place };
    if (command.action === 'list') {
      const { handles } = await server.call<{ handles: ShownHandle[] }>('GET', `${PATH}${formatQuery(query)}`);
      return command.json ? JSON.stringify(handles) : formatHandles(handles);
    }
    const { id, isRecursive } = command.closes;
    if (!/^(?:\*|\d{1,20})$/.test(id))
      throw new StartError(`${id} is no id of a handle: holdfast handles list prints them.`);
    const asked = { ...query, id, recursive: String(isRecursive) };
    const { closed } = await server.call<{ closed: number }>('DELETE', `${PATH}${formatQuery(asked)}`);
    if (command.json) return JSON.stringify({ closed });
    return closed === 1 ? '1 handle is closed.' : `${closed} handles are closed.`;
  });
}

async function onlyAccount(server: RunningServer): Promise<string> {
  const names = (await server.accounts.list(false)).filter(({ isServed }) => isServed).map(({ name }) => name);
  if (names.includes(DEVELOPMENT_ACCOUNT)) return DEVELOPMENT_ACCOUNT;
  if (names.length === 1) return names[0]!;
  throw new StartError(`Which account? --account ${names.join(', --account ')}`);
}

const formatQuery = (query: Readonly<Record<string, string>>): string => `?${new URLSearchParams(query)}`;

function formatHandles(handles: readonly ShownHandle[]): string {
  if (handles.length === 0) return 'Nothing is open.';
  return handles
    .map(({ id, share, path, access, shares, client, opened }) => {
      const words = (names: readonly string[], none: string) => names.join('+') || none;
      return `${id}  ${share}/${path}  ${words(access, 'attributes')}, sharing ${words(shares, 'nothing')}  ${client}  ${opened.slice(0, 19)}Z`;
    })
    .join('\n');
}
