import { describe, expect, it } from 'vitest';
import { azurite, azuriteFor, holdfast } from './azurite-compat.ts';

const at = { service: 'blob', scheme: 'http', host: '0.0.0.0', port: 10_000 } as const;

describe('Under the name azurite', () => {
  it('accepts the flags of all services', () => {
    const words = ['--queueHost', '0.0.0.0', '--table-port=10002'];
    expect(azurite.filterArguments(words)).toEqual({ words });
    expect(azurite.services).toEqual(['blob', 'queue', 'table', 'file']);
  });

  it('prints the lines that tools wait for, with the address as it was configured', () => {
    expect(azurite.startingLines(at)).toEqual(['Azurite Blob service is starting at http://0.0.0.0:10000']);
    expect(azurite.listeningLines(at)).toEqual([
      'Azurite Blob service is successfully listening at http://0.0.0.0:10000',
    ]);
    expect(azurite.listeningLines({ service: 'queue', scheme: 'https', host: '::1', port: 1 })).toEqual([
      'Azurite Queue service is successfully listening at https://[::1]:1',
    ]);
  });
});

describe('The version', () => {
  it('is the number alone under the names of the emulator, for scripts that parse it', () => {
    for (const flavour of [azurite, azuriteFor('blob'), azuriteFor('queue'), azuriteFor('table')]) {
      expect(flavour.version('1.2.3')).toBe('1.2.3');
    }
    expect(holdfast.version('1.2.3')).toBe('holdfast 1.2.3');
  });
});

describe('Under the name azurite-blob', () => {
  const azuriteBlob = azuriteFor('blob');

  it('warns only if flags of other services are given', () => {
    expect(azuriteBlob.services).toEqual(['blob']);
    expect(azuriteBlob.filterArguments(['--silent']).warning).toBeUndefined();
    expect(azuriteBlob.filterArguments(['--queuePort', '0'])).toEqual({
      words: [],
      warning: 'this is the blob service; passed over: --queuePort.',
    });
  });

  it('ignores the flags of other services, with their values', () => {
    const words = [
      '--blobHost',
      '0.0.0.0',
      '--queueHost',
      '0.0.0.0',
      '--table-port=10002',
      '--tableKeepAliveTimeout',
      '5',
    ];
    expect(azuriteBlob.filterArguments([...words, '-l', 'data'])).toEqual({
      words: ['--blobHost', '0.0.0.0', '-l', 'data'],
      warning: expect.stringMatching(/passed over: --queueHost, --table-port, --tableKeepAliveTimeout\.$/),
    });
    expect(azuriteFor('table').filterArguments(words).words).toEqual([
      '--table-port=10002',
      '--tableKeepAliveTimeout',
      '5',
    ]);
  });

  it('does not treat a flag as the value of one that lacks its own', () => {
    expect(azuriteBlob.filterArguments(['--queueHost', '--silent', '--tablePort']).words).toEqual(['--silent']);
  });

  it('leaves other words as they are', () => {
    const words = ['queueHost', '--location=--queueHost', '--queueHosts', 'x', '--queue'];
    expect(azuriteBlob.filterArguments(words).words).toEqual(words);
  });

  it('prints the lines of both programs of the emulator', () => {
    expect(azuriteBlob.startingLines(at)).toEqual(['Azurite Blob service is starting on 0.0.0.0:10000']);
    expect(azuriteBlob.listeningLines(at)).toEqual([
      'Azurite Blob service successfully listens on http://0.0.0.0:10000',
      'Azurite Blob service is successfully listening at http://0.0.0.0:10000',
    ]);
  });
});

describe('Under the name holdfast', () => {
  it('ignores nothing', () => {
    expect(holdfast.filterArguments(['--queueHost', 'x'])).toEqual({ words: ['--queueHost', 'x'] });
  });
});
