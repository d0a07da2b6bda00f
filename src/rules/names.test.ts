import { describe, expect, it } from 'vitest';
import { blobNameFault, containerNameFault } from './names.ts';

describe('A container name', () => {
  it.each(['abc', '123', 'a-b', 'a-b-c-1', 'a'.repeat(63), '$root', '$web', '$logs'])('may be %s', (name) =>
    expect(containerNameFault(name)).toBeUndefined(),
  );

  it.each(['Abc', 'a_b', 'a.b', 'a b', '-ab', 'ab-', 'a--b', '$rot', 'a$b', '---', '啊齄丂狛狜', 'abc\n'])(
    'must not be %j',
    (name) => expect(containerNameFault(name)).toBe('InvalidResourceName'),
  );

  it.each(['', 'a', 'ab', 'A', '--', 'a'.repeat(64), 'A'.repeat(64)])('has 3 to 63 characters, unlike %j', (name) =>
    expect(containerNameFault(name)).toBe('OutOfRangeInput'),
  );
});

describe('A blob name', () => {
  it.each(['a', '/', '..', 'a//b', ' ', '\u0001', '\ufffe', '😊'.repeat(512), 'a'.repeat(1024)])('may be %j', (name) =>
    expect(blobNameFault(name)).toBeUndefined(),
  );

  it.each(['', 'a'.repeat(1025), `${'😊'.repeat(512)}a`])('has 1 to 1,024 UTF-16 units, unlike %j', (name) =>
    expect(blobNameFault(name)).toBe('OutOfRangeInput'),
  );

  it('has at most 254 segments, also where they are empty', () => {
    expect(blobNameFault('a/'.repeat(253).concat('a'))).toBeUndefined();
    expect(blobNameFault('/'.repeat(253))).toBeUndefined();
    expect(blobNameFault('a/'.repeat(254))).toBe('InvalidUri');
    expect(blobNameFault('/'.repeat(254))).toBe('InvalidUri');
  });
});
