/** Names of the program: under those of the Azurite emulator it prints the lines that tools wait for. */
import { serviceTitle } from '../server/endpoints.ts';
import { type ServiceName, serviceNames } from '../services/common/names.ts';

export interface CliFlavour {
  /** Prefix of its messages. */
  readonly name: string;
  /** The services that it serves. */
  readonly services: readonly ServiceName[];
  /** The command line without the flags that this program ignores, and a warning that names them. */
  filterArguments(words: readonly string[]): { readonly words: readonly string[]; readonly warning?: string };
  startingLines(at: ListenAddress): readonly string[];
  listeningLines(at: ListenAddress): readonly string[];
  closingLines(service: ServiceName): readonly string[];
  closedLines(service: ServiceName): readonly string[];
  /** What --version prints. */
  version(number: string): string;
  /** Whether --silent suppresses these lines, too. */
  readonly honoursSilent: boolean;
}

/** As it was configured, not as it can be reached: tools that wait for 0.0.0.0 compare the text. */
export interface ListenAddress {
  readonly service: ServiceName;
  readonly scheme: 'http' | 'https';
  readonly host: string;
  readonly port: number;
}

export const holdfast: CliFlavour = {
  name: 'holdfast',
  services: serviceNames,
  filterArguments: (words) => ({ words }),
  startingLines: () => [],
  listeningLines,
  closingLines: () => [],
  closedLines: () => [],
  version: (number) => `holdfast ${number}`,
  honoursSilent: true,
};

const azuriteCommon = {
  closingLines: (service: ServiceName) => [`Azurite ${serviceTitle(service)} service is closing...`],
  closedLines: (service: ServiceName) => [`Azurite ${serviceTitle(service)} service successfully closed`],
  // The emulator prints the number alone, and scripts parse it.
  version: (number: string) => number,
  honoursSilent: false,
};

export const azurite: CliFlavour = {
  ...azuriteCommon,
  name: 'azurite',
  services: serviceNames,
  filterArguments: (words) => ({ words }),
  startingLines: (at) => [`Azurite ${serviceTitle(at.service)} service is starting at ${origin(at)}`],
  listeningLines,
};

/** azurite-blob, azurite-queue and azurite-table. */
export function azuriteFor(service: ServiceName): CliFlavour {
  return {
    ...azuriteCommon,
    name: `azurite-${service}`,
    services: [service],
    filterArguments(words) {
      const { kept, ignored } = withoutOtherServices(words, service);
      if (ignored.length === 0) return { words };
      return { words: kept, warning: `this is the ${service} service; passed over: ${ignored.join(', ')}.` };
    },
    startingLines: (at) => [`Azurite ${serviceTitle(service)} service is starting on ${hostAndPort(at)}`],
    // The emulator's programs print different lines, and there are tools that wait for either.
    listeningLines: (at) => [
      `Azurite ${serviceTitle(service)} service successfully listens on ${origin(at)}`,
      ...listeningLines(at),
    ],
  };
}

function listeningLines(at: ListenAddress): readonly string[] {
  return [`Azurite ${serviceTitle(at.service)} service is successfully listening at ${origin(at)}`];
}

const SERVICE_FLAG = /^--(blob|queue|table|file|smb)(?:host|port|keepalivetimeout)$/;

/** Tools that start the emulator give the flags of all services, even if only one is started. */
function withoutOtherServices(words: readonly string[], service: ServiceName): { kept: string[]; ignored: string[] } {
  const kept: string[] = [];
  const ignored: string[] = [];
  for (let index = 0; index < words.length; index++) {
    const word = words[index]!;
    const [flag = ''] = word.split('=', 1);
    const [, flagService = service] = SERVICE_FLAG.exec(`--${flag.slice(2).replaceAll('-', '').toLowerCase()}`) ?? [];
    if (!flag.startsWith('--') || flagService === service) {
      kept.push(word);
      continue;
    }
    ignored.push(flag);
    const next = words[index + 1];
    if (flag === word && next !== undefined && !next.startsWith('-')) index++;
  }
  return { kept, ignored };
}

function origin(at: ListenAddress): string {
  return `${at.scheme}://${hostAndPort(at)}`;
}

function hostAndPort({ host, port }: ListenAddress): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}
