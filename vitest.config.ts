import { existsSync } from 'node:fs';
import { defineConfig } from 'vitest/config';

/** What a tree without the tests that want it does not have. */
const isThere = (file: string) => existsSync(new URL(file, import.meta.url));
const setups = ['./test/support/postgres-global-setup.ts'].filter(isThere);
const seeds = ['./test/support/property-seed.ts'].filter(isThere);

export default defineConfig({
  test: {
    include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
    globalSetup: ['./scripts/vitest-setup.mjs', ...setups],
    setupFiles: seeds,
    reporters: ['default', './scripts/vitest-reporter.mjs'],
    // Native add-ons and signals want processes of their own; more than two at once only slows the races down.
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // 'holdfast' is dist/index.js, loaded as a user's program would load it.
    server: { deps: { external: [/\/dist\/.*\.js$/] } },
  },
});
