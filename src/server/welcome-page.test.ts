import { describe, expect, it } from 'vitest';
import { developmentAccount } from './config.ts';
import { welcomePage } from './welcome-page.ts';

const origins = { blob: 'https://127.0.0.1:1', table: 'https://127.0.0.1:3' };

describe('The page at the root', () => {
  it('names the services that are served, and the connection string of the development account', () => {
    const page = welcomePage({ origins, accounts: [developmentAccount], hasAuthority: false });
    expect(page).toContain('https://127.0.0.1:1/devstoreaccount1');
    expect(page).toContain('<th>Table</th>');
    expect(page).not.toContain('<th>Queue</th>');
    expect(page).toContain(
      `AccountKey=${developmentAccount.keys[0]};BlobEndpoint=https://127.0.0.1:1/devstoreaccount1;`,
    );
    expect(page).not.toContain('/_holdfast/certificate');
    // Debian's Python packages refuse it.
    expect(page).not.toContain('every SDK');
    expect(page).toContain('most SDKs also know as <code>UseDevelopmentStorage=true</code>');
  });

  it.each([
    ['another account', { name: 'mine', keys: ['c2VjcmV0'] }],
    ['another key of the development account', { name: developmentAccount.name, keys: ['c2VjcmV0'] }],
    ['no account', undefined],
  ])('shows neither names nor keys of %s', (_, account) => {
    const page = welcomePage({ origins, accounts: account ? [account] : [], hasAuthority: true });
    expect(page).toContain('AccountName=&lt;account&gt;;AccountKey=&lt;key&gt;;');
    expect(page).not.toMatch(/c2VjcmV0|mine\b|devstoreaccount1/);
    expect(page).toContain('/_holdfast/certificate');
  });
});
