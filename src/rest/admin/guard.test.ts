import { describe, expect, it } from 'vitest';
import { isLocalPeer } from './guard.ts';

describe('A caller', () => {
  it.each([
    ['127.0.0.1', '127.0.0.1'],
    ['127.8.9.10', '127.0.0.1'],
    ['::1', '::1'],
    ['::ffff:127.0.0.1', '::ffff:127.0.0.1'],
    ['10.1.2.3', '10.1.2.3'],
    ['fe80::1', 'fe80::1'],
  ])('from %s to %s is on this machine', (remoteAddress, localAddress) => {
    expect(isLocalPeer({ remoteAddress, localAddress })).toBe(true);
  });

  it.each([
    ['10.1.2.3', '10.1.2.4'],
    ['10.1.2.3', '127.0.0.1'],
    ['128.0.0.1', '10.0.0.1'],
    ['::ffff:10.1.2.3', '::1'],
    ['fe80::2', 'fe80::1'],
    [undefined, undefined],
    [undefined, '127.0.0.1'],
  ])('from %s to %s is not', (remoteAddress, localAddress) => {
    expect(isLocalPeer({ remoteAddress, localAddress })).toBe(false);
  });
});
