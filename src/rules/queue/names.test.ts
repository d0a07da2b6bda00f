import { describe, expect, it } from 'vitest';
import { queueNameFault } from '../names.ts';

describe('The name of a queue', () => {
  it.each(['abc', 'a-b', '1-2', 'a'.repeat(63), 'abc-def-ghi'])('may be %s', (name) => {
    expect(queueNameFault(name)).toBeUndefined();
  });

  it.each([
    ['', 'OutOfRangeInput'],
    ['ab', 'OutOfRangeInput'],
    ['a'.repeat(64), 'OutOfRangeInput'],
    ['ABC', 'InvalidResourceName'],
    ['a--b', 'InvalidResourceName'],
    ['-ab', 'InvalidResourceName'],
    ['ab-', 'InvalidResourceName'],
    ['a_b', 'InvalidResourceName'],
    ['啊齄丂狛狜', 'InvalidResourceName'],
    ['$root', 'InvalidResourceName'],
    ['$logs', 'InvalidResourceName'],
  ])('may not be %j: %s', (name, fault) => {
    expect(queueNameFault(name)).toBe(fault);
  });
});
