import { describe, expect, it } from 'vitest';
import { encodeContentDeletion } from '../../content/rows.ts';
import type { Key } from '../../partition/keys.ts';
import { type Deletion, decodeDeletion, deletionOfRows, encodeDeletion, keyPrefixesIn } from './deletions.ts';

/** Stores that exist hold these bytes. */
const stored: readonly [Deletion, string][] = [
  [{ kind: 'container', container: '7' }, '{"kind":"container","container":"7"}'],
  [{ kind: 'share', share: '7' }, '{"kind":"share","share":"7"}'],
  [{ kind: 'stage', stage: '5-9' }, '{"kind":"stage","stage":"5-9"}'],
  [{ kind: 'stage', stage: '5-9', uncounted: true }, '{"kind":"stage","stage":"5-9","uncounted":true}'],
  [{ kind: 'content', content: '5-9' }, '{"kind":"content","content":"5-9"}'],
  [
    { kind: 'content', content: '5-9', uncounted: true, pending: true },
    '{"kind":"content","content":"5-9","uncounted":true,"pending":true}',
  ],
  [deletionOfRows('ab' as Key, '\xff\0' as Key), '{"kind":"rows","under":["YWI=","/wA="]}'],
];

describe('An entry of the deletion queue', () => {
  it.each(stored)('%o has fixed bytes', (deletion, json) => {
    const value = Buffer.from(`\x01${json}`, 'latin1');
    expect(encodeDeletion(deletion)).toEqual(value);
    expect(decodeDeletion({ key: '' as Key, value, version: 1n })).toEqual(deletion);
    if (deletion.kind === 'content') expect(encodeContentDeletion(deletion)).toEqual(value);
  });

  it('of rows gives back the prefixes of their keys', () => {
    const prefixes = ['ab', '\xff\0'] as Key[];
    expect(keyPrefixesIn(deletionOfRows(...prefixes) as Deletion & { kind: 'rows' })).toEqual(prefixes);
  });
});
