/** What some tests need beyond Node, from Debian. Installs what is missing where that is possible, and says so where it is not. */
import { spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { pathToFileURL } from 'node:url';

/** Command to look for, and the package that brings it. */
const needed = [{ command: 'strace', package: 'strace' }];
const APT_TIMEOUT_MS = 180_000;

export function ensureDebianPackages() {
  let missing = needed.filter(({ command }) => !onPath(command));
  if (missing.length > 0 && existsSync('/etc/debian_version') && process.getuid?.() === 0) {
    const names = missing.map((each) => each.package);
    console.log(`Installing from Debian: ${names.join(' ')}`);
    apt('update') && apt('install', '--yes', '--no-install-recommends', ...names);
    missing = missing.filter(({ command }) => !onPath(command));
  }
  for (const { command } of missing) {
    console.log(
      `skip: ${command} is missing and could not be added, which takes root on Debian; tests that need it are skipped`,
    );
  }
}

function apt(...words) {
  const { status } = spawnSync('apt-get', ['--quiet', '--quiet', ...words], {
    stdio: ['ignore', 'ignore', 'inherit'],
    timeout: APT_TIMEOUT_MS,
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
  });
  return status === 0;
}

function onPath(command) {
  return (process.env.PATH ?? '').split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, command), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) ensureDebianPackages();
