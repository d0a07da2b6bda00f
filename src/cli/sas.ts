/** `holdfast sas`: signs a shared access signature and prints URLs with it. */
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { parseSas } from '../rest/auth/sas-parser.ts';
import {
  accountSasToken,
  blobSasToken,
  fileSasToken,
  queueSasToken,
  tableSasToken,
} from '../rest/auth/sas-signature.ts';
import { PERMISSION_ORDER } from '../rest/auth/service-sas.ts';
import { type Account, developmentAccount, StartError } from '../server/config.ts';
import { type Origins, serviceTitle } from '../server/endpoints.ts';
import { asStorageError } from '../services/common/errors.ts';
import { type ServiceName, serviceNames } from '../services/common/names.ts';
import { DEFAULT_ORIGINS } from './account.ts';
import { withAdminClient } from './admin-client.ts';
import type { SasCommand, SasSubject } from './sas-flags.ts';
import { DEFAULT_LOCATION } from './subcommand.ts';

const VERSION = '2022-11-02';
/** By the query parameter that the flag sets. */
const FLAG_BY_FIELD: Readonly<Record<string, string>> = {
  sp: '--permissions',
  sip: '--ip',
  srt: '--resource-types',
};

/** Returns the text to print: a URL for each service, or the form that --as names. */
export async function runSas(command: SasCommand): Promise<string> {
  const { subject, form } = command;
  const { account, origins } = await findSigner(command);
  const token = createToken(command, account);
  checkToken(token, subject);
  if (form === 'token') return token;
  const endpoints = servicesFor(subject).flatMap((service) => {
    const origin = origins[service];
    const url = command.urls[service] ?? (origin === undefined ? undefined : `${origin}/${account.name}`);
    return url === undefined ? [] : [[service, url] as const];
  });
  // The running server may serve only some of the services of an account.
  if (endpoints.length === 0) {
    const [service] = servicesFor(subject);
    throw new StartError(`The server that runs has no ${service} service: say where one is by --${service}-url.`);
  }
  if (form === 'url') return endpoints.map(([, url]) => `${url}${subjectPath(subject)}?${token}`).join('\n');
  const named = endpoints.map(([service, url]) => `${serviceTitle(service)}Endpoint=${url};`);
  return `${named.join('')}SharedAccessSignature=${token}`;
}

function servicesFor(subject: SasSubject): readonly ServiceName[] {
  if (subject.kind !== 'account') return [subject.kind];
  return serviceNames.filter((service) => subject.services.includes(service[0]!));
}

function subjectPath(subject: SasSubject): string {
  if (subject.kind === 'account') return '/';
  if (subject.kind === 'queue') return `/${encodeURIComponent(subject.queue)}`;
  if (subject.kind === 'table') return `/${encodeURIComponent(subject.table)}`;
  const [first, rest] = subject.kind === 'file' ? [subject.share, subject.path] : [subject.container, subject.blob];
  const parts = [first, ...(rest?.split('/') ?? [])];
  return parts.map((part) => `/${encodeURIComponent(part)}`).join('');
}

/** Reports a wrong flag now: a server would refuse the signature only when it is used. */
function checkToken(token: string, { kind }: SasSubject): void {
  try {
    parseSas(Object.fromEntries(new URLSearchParams(token)), kind === 'account' ? 'blob' : kind);
  } catch (error) {
    const detail = asStorageError(error)?.details?.AuthenticationErrorDetail ?? '';
    const field = /: (\w+)\.?$/.exec(detail)?.[1] ?? '';
    if (!Object.hasOwn(FLAG_BY_FIELD, field)) throw error;
    const order =
      field === 'sp' && kind !== 'account' ? `: its letters come in the order ${PERMISSION_ORDER[kind]}` : '';
    throw new StartError(`${FLAG_BY_FIELD[field]} is nothing that a signature takes${order}.`);
  }
}

async function findSigner({
  location,
  partition,
  account: name,
}: SasCommand): Promise<{ account: Account; origins: Origins }> {
  const folder = resolve(location ?? DEFAULT_LOCATION);
  if (partition === undefined && location === undefined && !existsSync(folder)) {
    if (name !== undefined && name !== developmentAccount.name)
      throw new StartError(`There is no folder ${folder} to look for the account ${name} in: name it by --location.`);
    return { account: developmentAccount, origins: DEFAULT_ORIGINS };
  }
  return withAdminClient(partition === undefined ? folder : { partition }, async (accounts) => {
    const stored = await accounts.list(true);
    const list = stored.filter(({ isServed }) => isServed);
    const only = name === undefined && list.length === 1 ? list[0] : undefined;
    const found = list.find((each) => each.name === (name ?? developmentAccount.name)) ?? only;
    if (found?.keys)
      return { account: { name: found.name, keys: found.keys }, origins: accounts.origins ?? DEFAULT_ORIGINS };
    if (name === undefined) throw new StartError('Choose an account by --account.');
    const isStored = stored.some((each) => each.name === name);
    throw new StartError(isStored ? `The account ${name} is not served.` : `There is no account ${name}.`);
  });
}

function createToken(command: SasCommand, { name, keys: [key = ''] }: Account): string {
  const { subject, permissions = '', start = '', expiry = '', ip = '', httpsOnly, policy: identifier = '' } = command;
  const common = { version: VERSION, permissions, start, expiry, ip, protocol: httpsOnly ? 'https' : '' };
  if (subject.kind === 'account') {
    const { services, resourceTypes } = subject;
    return accountSasToken(name, { ...common, services, resourceTypes }, key);
  }
  if (subject.kind === 'queue') return queueSasToken(name, subject.queue, { ...common, identifier }, key);
  if (subject.kind === 'table') {
    const { table, keys } = subject;
    return tableSasToken(name, { ...common, identifier, table, keys }, key);
  }
  if (subject.kind === 'file') {
    const { share, path = '' } = subject;
    const resource = path === '' ? 's' : 'f';
    return fileSasToken(name, { container: share, blob: path }, { ...common, resource, identifier }, key);
  }
  const { container, blob = '' } = subject;
  const resource = subject.blob === undefined ? 'c' : 'b';
  return blobSasToken(name, { container, blob }, { ...common, resource, identifier }, key);
}
