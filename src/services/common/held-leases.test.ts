import { describe, expect, it } from 'vitest';
import { HeldLeases } from './held-leases.ts';

describe('Held leases', () => {
  it('are counted until they end', () => {
    const held = new HeldLeases();
    held.set(1n, { container: 'box', blob: 'a' }, 100n);
    held.set(1n, { container: 'box', blob: 'b' }, undefined);
    held.set(1n, { container: 'box' }, 200n);
    held.set(2n, { container: 'box', blob: 'a' }, 300n);
    expect(held.count(99n)).toBe(4);
    expect(held.count(100n)).toBe(3);
    expect(held.count(1_000n)).toBe(1);
    held.end(1n, { container: 'box', blob: 'b' });
    expect(held.count(0n)).toBe(0);
  });

  it('are counted once when they are renewed', () => {
    const held = new HeldLeases();
    held.set(1n, { container: 'box', blob: 'a' }, 100n);
    held.set(1n, { container: 'box', blob: 'a' }, 200n);
    expect(held.count(150n)).toBe(1);
  });

  it('of blobs stay when that of their container is released, and go with the container', () => {
    const held = new HeldLeases();
    held.set(1n, { container: 'box' }, undefined);
    held.set(1n, { container: 'box', blob: 'a' }, undefined);
    held.set(1n, { container: 'box2', blob: 'a' }, undefined);
    held.set(1n, { service: 'file', container: 'box' }, undefined);
    held.end(1n, { container: 'box' });
    expect(held.count(0n)).toBe(3);
    held.endAll(1n, { container: 'box' });
    expect(held.count(0n)).toBe(2);
    held.endAll(1n, { service: 'file', container: 'box' });
    expect(held.count(0n)).toBe(1);
  });

  it('take bounded memory, and no expired one of them keeps a new one out for ever', () => {
    const held = new HeldLeases();
    for (let i = 0; i < 12_000; i++) held.set(1n, { container: 'box', blob: String(i) }, 100n);
    expect(held.count(0n)).toBe(10_000);
    expect(held.count(100n)).toBe(0);
    held.set(1n, { container: 'box', blob: 'new' }, 300n);
    expect(held.count(200n)).toBe(1);
  });
});
