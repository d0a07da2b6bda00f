/** Microsoft's SDK for Python, as Debian packages it. Each script of python/ is a topic; its checks are the tests. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type HandleServer, openAs, startHandleServer } from '../support/handle-server.ts';
import { debianPython, noPythonSdk, noPythonShares, noPythonTables } from '../support/installed-tools.ts';
import { type Running, serverFor } from '../support/test-server.ts';
import { environmentOf, sasOfCommand } from './environment.mjs';
import { run } from './steps.mjs';

const folder = fileURLToPath(new URL('python', import.meta.url));

describe("Microsoft's SDK for Python", () => {
  const running = serverFor('LMDB');
  topic(running, 'containers');
  topic(running, 'blobs');
  topic(running, 'snapshots');
  topic(running, 'in_place');
  topic(running, 'errors');
  topic(running, 'sas', () => sasOfCommand(running.server, running.folder!));
  topic(running, 'anonymous');
  topic(running, 'host_style');
  topic(running, 'queues');
  topic(running, 'shares', undefined, noPythonShares);
  topic(running, 'tables', undefined, noPythonTables);
});

describe("Microsoft's SDK for Python, beside open handles", () => {
  let started: HandleServer;
  beforeAll(async () => {
    started = await startHandleServer();
  });
  afterAll(() => started.stop());
  const running = {
    get server() {
      return started.server;
    },
  };
  topic(running, 'handles', openHandles, noPythonShares);

  async function openHandles() {
    const share = started.files.getShareClient('open');
    await share.create();
    await share.getDirectoryClient('docs').create();
    await share.getDirectoryClient('docs').getFileClient('plan').create(1);
    for (const path of ['docs', 'docs/plan', 'docs/plan']) await openAs(started.storage, share.name, path);
    return { HOLDFAST_OPEN_SHARE: share.name };
  }
});

/** @param more further environment variables of the script */
function topic(
  running: Pick<Running, 'server'>,
  name: string,
  more?: () => Promise<Record<string, string>>,
  missing = noPythonSdk,
): void {
  describe(name, () => {
    const script = `${folder}/${name}.py`;
    const titles = [...readFileSync(script, 'utf8').matchAll(/^@check\((['"])(.*)\1\)$/gm)].map(
      ([, , title]) => title!,
    );
    const faults = new Map<string, string | undefined>();
    let printed = '';

    beforeAll(async () => {
      if (missing) return;
      const { stdout, stderr } = await run(debianPython, [script], {
        env: { ...environmentOf(running.server), ...(await more?.()) },
        minutes: 0.9,
      });
      printed = stderr;
      for (const line of stdout.split('\n').filter((each) => each.startsWith('{'))) {
        const { title, fault } = JSON.parse(line);
        faults.set(title, fault);
      }
    });

    it.for(titles)('%s', (title, context) => {
      if (missing) return context.skip(missing);
      if (!faults.has(title)) throw new Error(`The script ended before this check: ${printed}`);
      expect(faults.get(title)).toBeUndefined();
    });
  });
}
