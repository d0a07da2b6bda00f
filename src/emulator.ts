/** What the program is called, and what differs under the names of the Azurite emulator: tools start it by them and wait for its lines. */

export interface Surface {
  /** At the head of its messages. */
  readonly name: string;
  /** The command line without what is passed over, and the message that says so. */
  read(words: readonly string[]): { readonly words: readonly string[]; readonly warning?: string };
  starting(at: Listening): readonly string[];
  listening(at: Listening): readonly string[];
  readonly closing: readonly string[];
  readonly closed: readonly string[];
  /** Whether --silent is about these lines too. */
  readonly silenced: boolean;
}

/** As it was asked for, not as it can be reached: who waits for 0.0.0.0 compares the text. */
export interface Listening {
  readonly scheme: 'http' | 'https';
  readonly host: string;
  readonly port: number;
}

export const holdfast: Surface = {
  name: 'holdfast',
  read: (words) => ({ words }),
  starting: () => [],
  listening,
  closing: [],
  closed: [],
  silenced: true,
};

const emulator = {
  closing: ['Azurite Blob service is closing...'],
  closed: ['Azurite Blob service successfully closed'],
  silenced: false,
};

export const azurite: Surface = {
  ...emulator,
  name: 'azurite',
  read(words) {
    const { kept, passedOver } = withoutOtherServices(words);
    const flags = passedOver.length > 0 ? `; passed over: ${passedOver.join(', ')}` : '';
    return { words: kept, warning: `this server has no queue service and no table service yet${flags}.` };
  },
  starting: (at) => [`Azurite Blob service is starting at ${origin(at)}`],
  listening,
};

export const azuriteBlob: Surface = {
  ...emulator,
  name: 'azurite-blob',
  read(words) {
    const { kept, passedOver } = withoutOtherServices(words);
    if (passedOver.length === 0) return { words };
    return { words: kept, warning: `this is the blob service; passed over: ${passedOver.join(', ')}.` };
  },
  starting: (at) => [`Azurite Blob service is starting on ${hostAndPort(at)}`],
  // The emulator's two programs word it differently, and there are tools that wait for either.
  listening: (at) => [`Azurite Blob service successfully listens on ${origin(at)}`, ...listening(at)],
};

function listening(at: Listening): readonly string[] {
  return [`Azurite Blob service is successfully listening at ${origin(at)}`];
}

const OTHER_SERVICES = /^(?:queue|table)(?:host|port|keepalivetimeout)$/;

/** Tools that start the emulator name all its services, also when their users want blobs only. */
function withoutOtherServices(words: readonly string[]): { kept: string[]; passedOver: string[] } {
  const kept: string[] = [];
  const passedOver: string[] = [];
  for (let index = 0; index < words.length; index++) {
    const word = words[index]!;
    const [flag = ''] = word.split('=', 1);
    if (!flag.startsWith('--') || !OTHER_SERVICES.test(flag.replaceAll('-', '').toLowerCase())) {
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
