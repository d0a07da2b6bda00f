/** What the program is called, and what differs under the names of the Azurite emulator: tools start it by them and wait for its lines. */
import { titleOf } from '../server/endpoints.ts';
import { type ServiceName, serviceNames } from '../services/common/names.ts';

export interface Surface {
  /** At the head of its messages. */
  readonly name: string;
  /** Which services it has. */
  readonly services: readonly ServiceName[];
  /** The command line without what is passed over, and the message that says so. */
  read(words: readonly string[]): { readonly words: readonly string[]; readonly warning?: string };
  starting(at: Listening): readonly string[];
  listening(at: Listening): readonly string[];
  closing(service: ServiceName): readonly string[];
  closed(service: ServiceName): readonly string[];
  /** What --version prints. */
  version(number: string): string;
  /** Whether --silent is about these lines too. */
  readonly silenced: boolean;
}

/** As it was asked for, not as it can be reached: who waits for 0.0.0.0 compares the text. */
export interface Listening {
  readonly service: ServiceName;
  readonly scheme: 'http' | 'https';
  readonly host: string;
  readonly port: number;
}

export const holdfast: Surface = {
  name: 'holdfast',
  services: serviceNames,
  read: (words) => ({ words }),
  starting: () => [],
  listening,
  closing: () => [],
  closed: () => [],
  version: (number) => `holdfast ${number}`,
  silenced: true,
};

const emulator = {
  closing: (service: ServiceName) => [`Azurite ${titleOf(service)} service is closing...`],
  closed: (service: ServiceName) => [`Azurite ${titleOf(service)} service successfully closed`],
  // The emulator prints the number alone, and scripts parse it.
  version: (number: string) => number,
  silenced: false,
};

export const azurite: Surface = {
  ...emulator,
  name: 'azurite',
  services: serviceNames,
  read: (words) => ({ words }),
  starting: (at) => [`Azurite ${titleOf(at.service)} service is starting at ${origin(at)}`],
  listening,
};

/** azurite-blob, azurite-queue and azurite-table. */
export function azuriteOf(service: ServiceName): Surface {
  return {
    ...emulator,
    name: `azurite-${service}`,
    services: [service],
    read(words) {
      const { kept, passedOver } = withoutOthers(words, service);
      if (passedOver.length === 0) return { words };
      return { words: kept, warning: `this is the ${service} service; passed over: ${passedOver.join(', ')}.` };
    },
    starting: (at) => [`Azurite ${titleOf(service)} service is starting on ${hostAndPort(at)}`],
    // The emulator's programs word it differently, and there are tools that wait for either.
    listening: (at) => [`Azurite ${titleOf(service)} service successfully listens on ${origin(at)}`, ...listening(at)],
  };
}

function listening(at: Listening): readonly string[] {
  return [`Azurite ${titleOf(at.service)} service is successfully listening at ${origin(at)}`];
}

const OF_A_SERVICE = /^--(blob|queue|table)(?:host|port|keepalivetimeout)$/;

/** Tools that start the emulator name all its services, also when their users want one of them only. */
function withoutOthers(words: readonly string[], service: ServiceName): { kept: string[]; passedOver: string[] } {
  const kept: string[] = [];
  const passedOver: string[] = [];
  for (let index = 0; index < words.length; index++) {
    const word = words[index]!;
    const [flag = ''] = word.split('=', 1);
    const [, of = service] = OF_A_SERVICE.exec(`--${flag.slice(2).replaceAll('-', '').toLowerCase()}`) ?? [];
    if (!flag.startsWith('--') || of === service) {
      kept.push(word);
      continue;
    }
    passedOver.push(flag);
    const next = words[index + 1];
    if (flag === word && next !== undefined && !next.startsWith('-')) index++;
  }
  return { kept, passedOver };
}

function origin(at: Listening): string {
  return `${at.scheme}://${hostAndPort(at)}`;
}

function hostAndPort({ host, port }: Listening): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}
