/** holdfast sas */
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { type Account, developmentAccount, StartError } from '../config.ts';
import { readSas } from '../rest/auth/sas.ts';
import { accountSasToken, serviceSasToken } from '../rest/auth/sas-strings.ts';
import { asStorageError } from '../services/errors.ts';
import { USUAL_ORIGIN } from './account.ts';
import { administer } from './administration.ts';
import { DEFAULT_LOCATION } from './command.ts';
import type { SasCommand } from './sas-flags.ts';

const VERSION = '2022-11-02';
/** Of the fields in the query. */
const flagOf: Readonly<Record<string, string>> = {
  sp: '--permissions',
  sip: '--ip',
  ss: '--services',
  srt: '--resource-types',
};

/** What is to be printed: the URL. */
export async function runSas(command: SasCommand): Promise<string> {
  const { account, origin } = await signerOf(command);
  const base = (command.blobUrl ?? `${origin}/${account.name}`).replace(/\/+$/, '');
  const token = tokenOf(command, account);
  try {
    readSas(Object.fromEntries(new URLSearchParams(token)));
  } catch (error) {
    const detail = asStorageError(error)?.details?.AuthenticationErrorDetail ?? '';
    const field = /: (\w+)\.?$/.exec(detail)?.[1] ?? '';
    throw Object.hasOwn(flagOf, field)
      ? new StartError(
          `${flagOf[field]} is nothing that a signature takes${field === 'sp' ? ': its letters come in the order racwdl' : ''}.`,
        )
      : error;
  }
  const path = [command.container, ...(command.blob?.split('/') ?? [])].map((part) =>
    part === undefined ? '' : `/${encodeURIComponent(part)}`,
  );
  return `${base}${path.join('') || '/'}?${token}`;
}

async function signerOf({
  location,
  partition,
  account: name,
}: SasCommand): Promise<{ account: Account; origin: string }> {
  const folder = resolve(location ?? DEFAULT_LOCATION);
  if (partition === undefined && location === undefined && !existsSync(folder)) {
    if (name !== undefined && name !== developmentAccount.name)
      throw new StartError(`There is no folder ${folder} to look for the account ${name} in: name it by --location.`);
    return { account: developmentAccount, origin: USUAL_ORIGIN };
  }
  return administer(partition === undefined ? folder : { partition }, async (accounts) => {
    const stored = await accounts.list(true);
    const list = stored.filter(({ isServed }) => isServed);
    const only = name === undefined && list.length === 1 ? list[0] : undefined;
    const found = list.find((each) => each.name === (name ?? developmentAccount.name)) ?? only;
    if (found?.keys)
      return { account: { name: found.name, keys: found.keys }, origin: accounts.origin ?? USUAL_ORIGIN };
    if (name === undefined) throw new StartError('Choose an account by --account.');
    const isStored = stored.some((each) => each.name === name);
    throw new StartError(isStored ? `The account ${name} is not served.` : `There is no account ${name}.`);
  });
}

function tokenOf(command: SasCommand, { name, keys }: Account): string {
  const { container, blob, permissions = '', start = '', expiry = '', ip = '', httpsOnly, policy = '' } = command;
  const common = { version: VERSION, permissions, start, expiry, ip, protocol: httpsOnly ? 'https' : '' };
  const { services, resourceTypes } = command;
  if (container === undefined) return accountSasToken(name, { ...common, services, resourceTypes }, keys[0]!);
  const resource = blob === undefined ? 'c' : 'b';
  return serviceSasToken(name, { container, blob: blob ?? '' }, { ...common, resource, identifier: policy }, keys[0]!);
}
