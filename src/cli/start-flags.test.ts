import { describe, expect, it } from 'vitest';
import { StartError } from '../server/config.ts';
import { flagGroups, flags } from './start-flag-groups.ts';
import { helpText, parseCommand } from './start-flags.ts';

const log = { level: 'info', format: 'text' };
const ROWS = 'postgres://me:secret@host/rows';

describe('The command line', () => {
  const starts: [line: string, options: object][] = [
    ['', { log }],
    ['start', { log }],
    ['--location ./data --blobPort 20000', { location: './data', blobPort: 20_000, log }],
    ['start -l ./data --blobHost=0.0.0.0', { location: './data', blobHost: '0.0.0.0', log }],
    ['--blob-port 0 --in-memory-persistence', { blobPort: 0, inMemory: true, log }],
    [
      '--queue-port 7 --tableHost ::1 --queueKeepAliveTimeout 9',
      { queuePort: 7, tableHost: '::1', queueKeepAliveSeconds: 9, log },
    ],
    ['--blobKeepAliveTimeout 30 --testClock', { blobKeepAliveSeconds: 30, testClock: true, log }],
    ['--skipApiVersionCheck --disableTelemetry', { log }],
    ['--cert c --key k', { https: { cert: 'c', key: 'k' }, log }],
    ['--cert c.pfx --pwd p', { https: { cert: 'c.pfx', password: 'p' }, log }],
    ['--https auto --oauth basic', { https: 'auto', oauth: 'basic', log }],
    ['--loose --disableProductStyleUrl', { looseMode: true, pathStyleOnly: true, log }],
    ['-L', { looseMode: true, log }],
    ['--loose=true --inMemoryPersistence=false', { looseMode: true, log }],
    ['--loose=TRUE --disable-product-style-url=False', { looseMode: true, log }],
    ['--loose true --silent false --testClock true', { looseMode: true, testClock: true, log }],
    ['--loose --no-loose', { log }],
    ['--no-silent --no-disableTelemetry --no-skipApiVersionCheck', { log }],
    ['--loose=false --loose', { looseMode: true, log }],
    ['--help=false --version=false', { log }],
    ['--cors *', { cors: ['*'], log }],
    ['--allowed-hosts a.example,b.example', { allowedHosts: ['a.example', 'b.example'], log }],
    ['--cors http://localhost:3000,https://a.example', { cors: ['http://localhost:3000', 'https://a.example'], log }],
    ['--body-memory 32', { bodyBytesMax: 32 << 20, log }],
    ['--remote-metrics', { remoteMetrics: true, log }],
    ['--seed seed.yaml', { seed: 'seed.yaml', log }],
    ['--rehydration 0', { rehydrationSeconds: 0, log }],
    ['--copy-from http://a --copyFrom https://b:1', { copyFrom: ['http://a', 'https://b:1'], log }],
    ['--inMemoryPersistence --extentMemoryLimit 5', { inMemory: true, memoryBytesMax: 5 << 20, log }],
    [
      '--inMemoryPersistence --extentMemoryLimit 64.500000',
      { inMemory: true, memoryBytesMax: 64.5 * 1024 * 1024, log },
    ],
    ['-d debug.log', { log: { level: 'debug', format: 'text', file: 'debug.log', requests: true } }],
    ['--log-format json --log-level warn', { log: { level: 'warn', format: 'json' } }],
    ['-s', { log: { level: 'silent', format: 'text', requests: false } }],
    [`--partition ${ROWS} --extents ./bytes`, { partition: ROWS, extents: './bytes', log }],
  ];
  it.each(starts)('starts with "%s"', (line, options) => {
    expect(parseCommand(split(line))).toEqual({ command: 'start', options, silent: line === '-s' });
  });

  it('reads the accounts of AZURITE_ACCOUNTS and ignores the other variables of Azurite', () => {
    const env = { AZURITE_ACCOUNTS: 'one:a2V5', AZURITE_SKIP_API_VERSION_CHECK: 'true' };
    expect(parseCommand([], env)).toMatchObject({ options: { accounts: [{ name: 'one', keys: ['a2V5'] }] } });
  });

  it('reads the URL of a shared store from HOLDFAST_PARTITION, unless a flag gives another place', () => {
    const env = { HOLDFAST_PARTITION: ROWS };
    expect(parseCommand(split('--extents x'), env)).toMatchObject({ options: { partition: ROWS, extents: 'x' } });
    const other = 'postgresql://other/rows';
    expect(parseCommand(split(`--partition ${other} --extents x`), env)).toMatchObject({
      options: { partition: other },
    });
    expect(parseCommand(split('check --extents x'), env)).toMatchObject({ where: { partition: ROWS, extents: 'x' } });
    expect(parseCommand(split('check --location x'), env)).toMatchObject({ where: 'x' });
    expect(parseCommand(split('account list'), env)).toMatchObject({ account: { partition: ROWS } });
    expect(parseCommand(split('account list --location x'), env)).toMatchObject({ account: { partition: undefined } });
    expect(parseCommand(split(`sas --partition ${other}`), env)).toMatchObject({ sas: { partition: other } });
    expect(parseCommand([], { HOLDFAST_PARTITION: '' })).toMatchObject({ options: { log } });
  });

  it('checks ./holdfast-data, or the folder that is named', () => {
    expect(parseCommand(['check'])).toEqual({ command: 'check', where: 'holdfast-data' });
    expect(parseCommand(split('check --location x'))).toEqual({ command: 'check', where: 'x' });
  });

  it('imports from a folder of Azurite into ./holdfast-data, or into the place that is named', () => {
    const parsed = (line: string, env = {}) => parseCommand(split(line), env);
    const common = { from: 'az', json: false };
    expect(parsed('import --from-azurite az')).toEqual({
      command: 'import',
      import: { ...common, to: { location: 'holdfast-data' } },
    });
    expect(parsed(`import --from-azurite az --partition ${ROWS} --extents x`)).toMatchObject({
      import: { to: { partition: ROWS, extents: 'x' } },
    });
    expect(parsed('import --from-azurite az --location d', { AZURITE_ACCOUNTS: 'one:a2V5' })).toMatchObject({
      import: { to: { location: 'd', accounts: [{ name: 'one', keys: ['a2V5'] }] } },
    });
    expect(parsed('import --help')).toEqual({ command: 'help', topic: 'import' });
    expect(helpText('import')).toContain('--from-azurite <folder>');
  });

  it.each(['help', '--help', '-h'])('prints its help for %s', (line) => {
    expect(parseCommand(split(line))).toEqual({ command: 'help' });
    expect(helpText()).toContain('--blobPort <port>');
  });

  it('groups the flags in its help, and has an example', () => {
    const titles = helpText().match(/^\S.*:$/gm) ?? [];
    expect(titles.slice(0, 2)).toEqual(['Usage:', 'Example:']);
    expect(titles).toContain('Where the data is:');
    const [, example = ''] = /Example:\n {2}holdfast (.*)\n/.exec(helpText()) ?? [];
    expect(parseCommand(split(example))).toMatchObject({ command: 'start', options: { location: './data' } });
    expect(new Set(Object.keys(flags))).toEqual(new Set(flagGroups.flatMap(([, group]) => Object.keys(group))));
  });

  it.each(['check', 'account', 'sas', 'clock'])('prints the flags of %s, and no others', (topic) => {
    for (const line of [`help ${topic}`, `${topic} --help`, `${topic} -h`])
      expect(parseCommand(split(line))).toEqual({ command: 'help', topic });
    expect(helpText(topic)).toContain(`  holdfast ${topic}`);
    expect(helpText(topic)).toContain('--location <folder>');
    expect(helpText(topic)).not.toContain('--blobPort');
  });

  it.each(['version', '--version', '-v'])('prints its version for %s', (line) => {
    expect(parseCommand(split(line))).toEqual({ command: 'version' });
  });

  const refused: [line: string, fault: string][] = [
    ['--blobprot 1', 'There is no flag --blobprot. Did you mean --blobPort?'],
    ['--lcoation x', 'Did you mean --location?'],
    ['--wholly-different', 'There is no flag --wholly-different. See holdfast --help.'],
    ['-x', 'There is no flag -x.'],
    ['--toString', 'There is no flag --toString.'],
    ['strat', 'There is no command strat. Did you mean start?'],
    ['wholly-different', 'There is no command wholly-different. See holdfast --help.'],
    ['start extra', 'Unexpected extra'],
    ['--blobPort', '--blobPort needs a value'],
    ['--blobPort --silent', '--blobPort needs a value'],
    ['--location=', '--location needs a value'],
    ['--silent=yes', '--silent is true or false, not yes'],
    ['--blobPort 65536', 'from 0 to 65535, not 65536'],
    ['--blobPort -1', 'from 0 to 65535, not -1'],
    ['--blobPort 1e3', 'from 0 to 65535, not 1e3'],
    ['--log-level loud', '--log-level is silent, error'],
    ['--log-format xml', '--log-format is text, json'],
    ['--inMemoryPersistence --location x', 'leave one out'],
    ['--queuePort 65536', '--queuePort is a whole number from 0 to 65535, not 65536'],
    ['--tableKeepAliveTimeout long', '--tableKeepAliveTimeout is a whole number from 0 to 86400, not long'],
    ['--key x', '--key is the key of a certificate: name that by --cert'],
    ['--pwd x', '--pwd is the password of a key or a PFX: name the certificate by --cert'],
    ['--https on', '--https is auto, not on'],
    ['--https auto --cert x', 'either --cert or --https auto'],
    ['--https auto --key x', '--key is the key of a certificate'],
    ['--https auto --pwd x', '--pwd is the password'],
    ['--oauth advanced --https auto', '--oauth is basic, not advanced'],
    ['--oauth basic', 'over HTTPS only'],
    ['--cors example.com', 'example.com is not an origin'],
    ['--cors https://example.com/path', 'without a path'],
    ['--cors *,', 'is not an origin'],
    ['--allowed-hosts http://a.example', 'is not the name of a host'],
    ['--body-memory 0', 'is more than 0'],
    ['--rehydration 86401', '--rehydration is a whole number from 0 to 86400'],
    ['--copy-from example.com', 'copy-from: example.com is not an origin'],
    ['--rehydration high', '--rehydration is a whole number from 0 to 86400'],
    ['--extentMemoryLimit 5', 'needs --inMemoryPersistence'],
    ['--inMemoryPersistence --extentMemoryLimit 0', 'is more than 0'],
    ['--inMemoryPersistence --extentMemoryLimit much', 'is a number of megabytes, not much'],
    ['--loose=yes', '--loose is true or false, not yes'],
    ['--loose yes', 'Unexpected yes'],
    ['--no-location', 'There is no flag --no-location'],
    ['--no-loose=false', 'There is no flag --no-loose'],
    ['check --blobPort 1', 'There is no flag --blobPort'],
    [`--partition ${ROWS}`, 'name it by --extents'],
    [`--partition ${ROWS} --inMemoryPersistence --extents x`, 'either in memory'],
    ['--extents x', 'give --partition, too'],
    ['--partition mysql://me:secret@host/rows --extents x', 'it is a URL, as in postgres://'],
    ['--partition host=x --extents x', 'it is a URL, as in postgres://'],
    [`--partition ${ROWS} --extents x --https auto`, 'needs a folder to keep the certificate in'],
    [`check --partition ${ROWS}`, '--extents'],
    ['check --extents x', '--extents goes with --partition'],
    [`check --partition ${ROWS} --extents x --location y`, 'leave one out'],
    [`account list --partition ${ROWS} --location y`, 'leave one out'],
    ['sas --partition secret', '--partition is a URL'],
    ['import', 'import needs the folder of an Azurite'],
    ['import az', 'Unexpected az'],
  ];
  it.each(refused)('refuses "%s" in one line', (line, fault) => {
    let refusal: unknown;
    try {
      parseCommand(split(line));
    } catch (error) {
      refusal = error;
    }
    expect(refusal).toBeInstanceOf(StartError);
    expect((refusal as StartError).message).toContain(fault);
    expect((refusal as StartError).message).not.toContain('\n');
    expect((refusal as StartError).message).not.toContain('secret');
  });

  it('refuses AZURITE_DB, which it would have to ignore', () => {
    expect(() => parseCommand([], { AZURITE_DB: 'mysql://x' })).toThrow('unset AZURITE_DB');
  });
});

function split(line: string): string[] {
  return line.split(' ').filter((word) => word !== '');
}
