import { describe, expect, it } from 'vitest';
import { defaultConnectionsMax, openFilesMax } from './open-files.ts';

const limits = (files: string) => `Limit                     Soft Limit           Hard Limit           Units
Max processes             7                    7                    processes
Max open files            ${files.padEnd(21)}${files.padEnd(21)}files
`;

describe('The number of connections', () => {
  it.each([
    ['64', 32],
    ['1024', 512],
    ['4096', 3584],
    ['1048576', 10_000],
    ['unlimited', 10_000],
  ])('with a limit of %s open files is %i', (files, connections) => {
    expect(defaultConnectionsMax(openFilesMax(limits(files)))).toBe(connections);
  });

  it('is the usual one where the limit is not known', () => {
    expect(openFilesMax('')).toBeUndefined();
    expect(defaultConnectionsMax(undefined)).toBeGreaterThan(0);
  });
});
