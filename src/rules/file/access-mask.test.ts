import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ALL_RIGHTS, GENERIC, grantRights, withoutGeneric } from './access-mask.ts';

const READ_ONLY_VIEW = 0x12_00a9;

describe('An access mask', () => {
  const cases: [mask: number, maximum: number, granted: number | undefined][] = [
    [0x1, ALL_RIGHTS, 0x1],
    [0x8000_0000, ALL_RIGHTS, 0x12_0089],
    [0x4000_0000, ALL_RIGHTS, 0x12_0116],
    [0x2000_0000, ALL_RIGHTS, 0x12_00a0],
    [0x1000_0000, ALL_RIGHTS, ALL_RIGHTS],
    [0xc000_0000, ALL_RIGHTS, 0x12_019f],
    [0x200_0000, ALL_RIGHTS, ALL_RIGHTS],
    [0x200_0000, READ_ONLY_VIEW, READ_ONLY_VIEW],
    [0x200_0001, READ_ONLY_VIEW, READ_ONLY_VIEW],
    [0x2, READ_ONLY_VIEW, undefined],
    [0x200_0002, READ_ONLY_VIEW, undefined],
    [0, ALL_RIGHTS, undefined],
    [0x200, ALL_RIGHTS, undefined],
    [0x400_0000, ALL_RIGHTS, undefined],
    [0x100_0000, ALL_RIGHTS, 0x100_0000],
    [0x300_0000, READ_ONLY_VIEW, READ_ONLY_VIEW + 0x100_0000],
  ];
  it.each(cases)('%i with a maximum of %i grants %s', (mask, maximum, granted) => {
    expect(grantRights(mask, maximum)).toBe(granted);
  });

  it('never grants more than the maximum, nor less than what is asked', () => {
    fc.assert(
      fc.property(fc.nat(0xffff_ffff), fc.nat(ALL_RIGHTS), (mask, maximum) => {
        const granted = grantRights(mask, maximum);
        if (granted === undefined) return;
        expect(granted & ~maximum & ~0x100_0000).toBe(0);
        expect(withoutGeneric(mask) & ~0x200_0000 & ~granted).toBe(0);
      }),
      { numRuns: 5_000 },
    );
  });

  it('has no generic right left once they are resolved', () => {
    const generic = GENERIC.reduce((sum, [bit]) => sum | bit, 0);
    fc.assert(fc.property(fc.nat(0xffff_ffff), (mask) => (withoutGeneric(mask) & generic) === 0));
  });
});
