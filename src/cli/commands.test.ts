import { describe, expect, it } from 'vitest';
import { StartError } from '../server/config.ts';
import { helpText, parseCommand } from './start-flags.ts';

const common = { location: 'holdfast-data', json: false };

describe('holdfast handles', () => {
  const parse = (line: string) => parseCommand(['handles', ...line.split(' ')]);

  it('lists and closes', () => {
    const all = { ...common, account: undefined };
    const lines: [line: string, handles: object][] = [
      ['list', { ...all, action: 'list', place: undefined }],
      ['list team -a mine', { ...all, account: 'mine', action: 'list', place: { share: 'team', path: '' } }],
      [
        'close team/a/b --id 7',
        {
          ...{ ...all, action: 'close', place: { share: 'team', path: 'a/b' } },
          closes: { id: '7', isRecursive: false },
        },
      ],
      [
        'close team --all --recursive',
        { ...all, action: 'close', place: { share: 'team', path: '' }, closes: { id: '*', isRecursive: true } },
      ],
    ];
    for (const [line, handles] of lines) expect(parse(line)).toEqual({ command: 'handles', handles });
  });

  it.each(['open', 'list a b', 'list --all', 'close --all', 'close a', 'close a --all --id 1'])(
    'refuses %s',
    (line) => {
      expect(() => parse(line)).toThrow(StartError);
    },
  );
});

describe('holdfast account', () => {
  const lines: [line: string, account: object][] = [
    ['list', { ...common, action: 'list', showKeys: false }],
    ['list --show-keys --json', { location: 'holdfast-data', json: true, action: 'list', showKeys: true }],
    ['add mine', { ...common, action: 'add', name: 'mine', keys: undefined }],
    ['add mine --key YQ==', { ...common, action: 'add', name: 'mine', keys: ['YQ=='] }],
    ['add --key YQ== --key2=Yg== mine', { ...common, action: 'add', name: 'mine', keys: ['YQ==', 'Yg=='] }],
    ['remove mine -l data', { ...common, location: 'data', action: 'remove', name: 'mine', withData: false }],
    ['remove mine --withData', { ...common, action: 'remove', name: 'mine', withData: true }],
    ['rotate-key mine', { ...common, action: 'rotate-key', name: 'mine', which: 1 }],
    ['rotate-key mine --which 2', { ...common, action: 'rotate-key', name: 'mine', which: 2 }],
  ];
  it.each(lines)('%s', (line, account) => {
    expect(parseCommand(['account', ...line.split(' ')])).toEqual({ command: 'account', account });
  });

  const refused: [line: string, fault: string][] = [
    ['account', 'account needs to know what to do: list, add, set, remove, rotate-key.'],
    ['account lsit', 'account cannot lsit: list, add, set, remove, rotate-key. Did you mean list?'],
    ['account list mine', 'Unexpected mine'],
    ['account add', 'account add needs a name'],
    ['account add one two', 'Unexpected two'],
    ['account add mine --key2 YQ==', '--key2 needs --key'],
    ['account remove mine --which 1', '--which belongs to account rotate-key, not to account remove'],
    ['account rotate-key mine --which 3', '--which is 1 or 2, not 3'],
    ['account list --blobPort 1', 'There is no flag --blobPort.'],
    ['account list --show-kesy', 'Did you mean --show-keys?'],
    ['acount list', 'Did you mean account?'],
  ];
  it.each(refused)('refuses "%s" in one line', (line, fault) => {
    const read = () => parseCommand(line.split(' '));
    expect(read).toThrow(StartError);
    expect(read).toThrow(fault);
  });

  it.each(['help account', 'account --help', 'account add -h'])('prints its help for %s', (line) => {
    const command = parseCommand(line.split(' '));
    expect(command).toEqual({ command: 'help', topic: 'account' });
    expect(helpText('account')).toContain('--with-data');
    expect(helpText('account')).not.toContain('--blobPort');
  });
});

describe('holdfast sas', () => {
  const read = (line: string) => {
    const command = parseCommand(`sas ${line}`.trim().split(' '));
    return command.command === 'sas' ? command.sas : undefined;
  };

  it('is of the whole account, for reading and listing, for an hour', () => {
    const before = Date.now();
    const sas = read('');
    expect(sas).toMatchObject({
      subject: { kind: 'account', services: 'bqtf', resourceTypes: 'sco' },
      permissions: 'rl',
    });
    expect(Date.parse(sas?.expiry ?? '')).toBeGreaterThanOrEqual(Math.floor(before / 1_000) * 1_000 + 3_600_000);
    expect(sas?.expiry).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
  });

  const subjects: [line: string, subject: object, permissions: string][] = [
    ['-c box', { kind: 'blob', container: 'box', blob: undefined }, 'rl'],
    ['-c box -b blob', { kind: 'blob', container: 'box', blob: 'blob' }, 'r'],
    ['-q line', { kind: 'queue', queue: 'line' }, 'r'],
    ['-s docs', { kind: 'file', share: 'docs', path: undefined }, 'rl'],
    ['--share docs --file a\\b.txt', { kind: 'file', share: 'docs', path: 'a/b.txt' }, 'r'],
    ['--queue line -p raup', { kind: 'queue', queue: 'line' }, 'raup'],
    ['-t people', { kind: 'table', table: 'people', keys: [undefined, undefined, undefined, undefined] }, 'r'],
    [
      '--table people --start-pk a --end-pk b --end-rk c',
      { kind: 'table', table: 'people', keys: ['a', undefined, 'b', 'c'] },
      'r',
    ],
  ];
  it.each(subjects)(
    '%s is for that resource, and for reading unless --permissions is given',
    (line, subject, permissions) => {
      expect(read(line)).toMatchObject({ subject, permissions, form: 'url', urls: {} });
    },
  );

  it('takes the URLs of services from flags', () => {
    expect(read('--queue-url http://q/x/ --table-url https://t')?.urls).toEqual({
      queue: 'http://q/x',
      table: 'https://t',
    });
  });

  const refused: [line: string, fault: string][] = [
    ['-c box -t people', 'leave out --container or --table'],
    ['-q line -t people', 'leave out --queue or --table'],
    ['-q line -b blob', '--blob needs --container'],
    ['-t people --services t', 'leave them out with --table'],
    ['--services bx', '--services are letters of b, q, t and f, not bx'],
    ['-q line -s docs', 'leave out --queue or --share'],
    ['-f file', '--file needs --share'],
    ['-q line --start-pk a', '--start-pk needs --table'],
    ['-t people --start-rk a', '--start-rk needs --start-pk'],
    ['-t people --end-rk a', '--end-rk needs --end-pk'],
    ['--as json', '--as is url, token, connection-string, not json'],
    ['--table-url here', '--table-url is a URL of http or https'],
  ];
  it.each(refused)('refuses "%s"', (line, fault) => {
    expect(() => read(line)).toThrow(fault);
  });

  it('leaves to a policy what is not given', () => {
    expect(read('-c box --policy readers')).toMatchObject({ permissions: undefined, expiry: undefined });
    expect(read('-c box --policy readers -p r -e 2030-01-01')).toMatchObject({
      permissions: 'r',
      expiry: '2030-01-01T00:00:00Z',
    });
  });

  it('accepts a time of the day, too', () => {
    expect(read('-e 2030-01-01T12:30Z')?.expiry).toBe('2030-01-01T12:30:00Z');
  });

  it('has its help', () => {
    expect(parseCommand(['help', 'sas'])).toEqual({ command: 'help', topic: 'sas' });
    expect(helpText('sas')).toContain('--resource-types <letters>');
  });
});

describe('holdfast clock', () => {
  it.each([
    ['', { location: 'holdfast-data', setBack: false, json: false }],
    ['-l data --json', { location: 'data', setBack: false, json: true }],
    ['--setBack', { location: 'holdfast-data', setBack: true, json: false }],
  ])('%s', (line, clock) => {
    expect(parseCommand(['clock', ...line.split(' ').filter(Boolean)])).toEqual({ command: 'clock', clock });
  });

  it('refuses unknown words, and has help of its own', () => {
    expect(() => parseCommand(['clock', 'set-back'])).toThrow('Unexpected set-back');
    expect(() => parseCommand(['clock', '--partition', 'postgres://host/x'])).toThrow('There is no flag --partition');
    expect(parseCommand(['clock', '--help'])).toEqual({ command: 'help', topic: 'clock' });
    expect(helpText('clock')).toContain('holdfast clock --set-back');
  });
});
