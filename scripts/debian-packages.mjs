/** Debian packages that some tests need beyond Node. Installs missing ones as root on Debian, and prints them elsewhere. */
import { spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync, readdirSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { pathToFileURL } from 'node:url';

/** Debian's own Python: another one on the PATH does not see Debian's modules. */
export const debianPython = '/usr/bin/python3';

const needed = [
  { name: 'strace', package: 'strace', isThere: () => onPath('strace') },
  { name: 'mkfs.ext4', package: 'e2fsprogs', isThere: () => onPath('mkfs.ext4') || existsSync('/sbin/mkfs.ext4') },
  { name: 'fusepy for Python', package: 'python3-fusepy', isThere: () => python('fusepy') },
  { name: 'rclone', package: 'rclone', isThere: () => onPath('rclone') },
  { name: 'smbclient', package: 'smbclient', isThere: () => onPath('smbclient') },
  { name: 'smbtorture', package: 'samba-testsuite', isThere: () => onPath('smbtorture') },
  { name: 'Samba', package: 'samba', isThere: () => existsSync('/usr/sbin/smbd') },
  { name: "Samba's modules", package: 'samba-vfs-modules', isThere: hasSambaModules },
  { name: 'impacket for Python', package: 'python3-impacket', isThere: () => python('impacket') },
  { name: 'samba for Python', package: 'python3-samba', isThere: () => python('samba') },
  { name: 'nmap', package: 'nmap', isThere: () => onPath('nmap') },
  { name: 'PostgreSQL', package: 'postgresql', isThere: hasPostgres },
  {
    name: 'azure.storage.blob for Python',
    package: 'python3-azure-storage',
    isThere: () => python('azure.storage.blob'),
  },
  { name: 'pytest', package: 'python3-pytest', isThere: () => python('pytest') },
  { name: 'azure.data.tables for Python', package: 'python3-azure', isThere: () => python('azure.data.tables') },
];
const APT_TIMEOUT_MS = 900_000;

export function ensureDebianPackages() {
  let missing = needed.filter(({ isThere }) => !isThere());
  if (missing.length > 0 && existsSync('/etc/debian_version') && process.getuid?.() === 0) {
    const names = missing.map((each) => each.package);
    console.log(`Installing from Debian: ${names.join(' ')}`);
    apt('update') && apt('install', '--yes', '--no-install-recommends', ...names);
    missing = missing.filter(({ isThere }) => !isThere());
  }
  for (const { name } of missing) {
    console.log(
      `skip: ${name} is missing and could not be added, which takes root on Debian; tests that need it are skipped`,
    );
  }
}

/** The server: a folder with only the clients of PostgreSQL does not count. */
function hasPostgres() {
  const folder = '/usr/lib/postgresql';
  return (
    existsSync(folder) && readdirSync(folder).some((version) => existsSync(join(folder, version, 'bin', 'initdb')))
  );
}

/** Without them Samba lists the share of the tests, and lets nobody connect to it. */
export function hasSambaModules() {
  const root = '/usr/lib';
  return (
    existsSync(root) &&
    readdirSync(root).some((folder) => existsSync(join(root, folder, 'samba', 'vfs', 'streams_xattr.so')))
  );
}

function python(module) {
  return spawnSync(debianPython, ['-c', `import ${module}`], { stdio: 'ignore' }).status === 0;
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
