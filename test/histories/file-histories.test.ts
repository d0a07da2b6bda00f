/** Linearizability of files: answers to sixteen clients of a server as users run it, checked against the model of a blob. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { restartableServer, root, type Server, startServers, stopServers } from '../support/restartable-servers.ts';
import { report } from './explain.ts';
import { type More, record } from './load.ts';
import { type Bug, isFound, planted, temporaryFolder } from './planted-bugs.ts';

async function load(work: (more: More, server: Server) => Promise<void>, copy = root) {
  const server = restartableServer(['--location', temporaryFolder(), '--filePort', '0'], copy);
  onTestFinished(() => stopServers([server]));
  await startServers([server]);
  const seed = Date.now() % 2 ** 31;
  return report(await record({ servers: [server], seed, files: true }, (more) => work(more, server)));
}

describe('The history of sixteen clients on files', { timeout: 120_000 }, () => {
  it('is linearizable, even when the server is killed and restarted', async () => {
    const violations = await load(async (more, server) => {
      for (let times = 0; times < 2; times++) {
        await more(400);
        await server.kill();
        await server.start();
      }
      await more(400);
    });
    expect(violations).toEqual([]);
  });

  const bugs: Bug[] = [
    {
      title: 'when a lease is not asked for its id',
      file: 'services/file/request-checks.js',
      find: /if \(verdict !== 'proceed'\)\s+throw fail\(LEASE_CODES\[verdict\]\);/,
      replace: "if (verdict === 'LeaseNotPresent') throw fail(LEASE_CODES[verdict]);",
    },
    {
      title: 'when a deletion leaves the file there',
      file: 'services/file/files.js',
      find: /await removeNode\(tx, target\);\s+return releaseFileContent\(tx, storage, target\.node, target\.share\);/,
      replace: 'return false;',
    },
  ];
  for (const bug of bugs) {
    it(`shows it ${bug.title}`, async () => {
      const copy = planted(bug);
      expect(await isFound(() => load((more) => more(800), copy))).toBe(true);
    });
  }
});
