/** Samba's smbd, as another server of the same protocol to compare with: one share, on a port of the loopback address, in a folder of its own. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { hasSambaModules } from '../../scripts/debian-packages.mjs';
import { freePort, listens } from './free-port.mjs';

/** An account that each Debian has. Samba's users are users of the system. */
const USER = 'daemon';
const PASSWORD = 'a-password-for-tests';
const START_TIMEOUT_MS = 10_000;

/** The reason why it cannot run; undefined: it can. */
export const noSamba =
  process.getuid?.() !== 0
    ? 'smbd takes root'
    : !existsSync('/usr/sbin/smbd')
      ? 'samba is not installed from Debian'
      : !hasSambaModules()
        ? 'samba-vfs-modules is not installed from Debian'
        : undefined;

/** @returns {Promise<import('./smb-target.mjs').SmbTarget>} */
export async function startSamba() {
  const folder = mkdtempSync(join(tmpdir(), 'samba-'));
  const [state, share] = [join(folder, 'state'), join(folder, 'share')];
  for (const each of [state, share]) mkdirSync(each);
  const { uid, gid } = idsOf(USER);
  chownSync(share, uid, gid);
  for (const each of [folder, share]) chmodSync(each, 0o755);
  const config = join(folder, 'smb.conf');
  writeFileSync(config, configOf(state, share));
  const added = spawnSync('pdbedit', ['-s', config, '--create', '--user', USER, '--password-from-stdin'], {
    input: `${PASSWORD}\n${PASSWORD}\n`,
  });
  if (added.status !== 0) throw new Error(`pdbedit: ${added.stderr}`);
  const port = await freePort();
  const child = spawn('/usr/sbin/smbd', ['-s', config, '--foreground', '--no-process-group', '-p', String(port)], {
    stdio: 'ignore',
    // When it ends it ends its process group.
    detached: true,
  });
  const ended = once(child, 'close');
  const remove = () => rmSync(folder, { recursive: true, force: true });
  if (!(await listens(port, START_TIMEOUT_MS, () => child.exitCode !== null))) {
    child.kill('SIGKILL');
    remove();
    throw new Error('smbd did not start.');
  }
  return {
    ...{ name: 'Samba', port, share: 'share', user: USER, password: PASSWORD, pid: child.pid, folder: share },
    log: () => '',
    async stop() {
      child.kill();
      await ended;
      remove();
    },
  };
}

/** @param {string} user */
function idsOf(user) {
  const [uid, gid] = ['-u', '-g'].map((word) => Number(spawnSync('id', [word, user], { encoding: 'utf8' }).stdout));
  return { uid: /** @type {number} */ (uid), gid: /** @type {number} */ (gid) };
}

/**
 * What Samba stores beyond a plain file system (streams, ACLs) is on; what only Linux programs on the same machine need is off.
 * @param {string} state
 * @param {string} share
 */
function configOf(state, share) {
  const folders = ['private dir', 'state directory', 'cache directory', 'lock directory', 'pid directory'];
  return `[global]
  security = user
  map to guest = never
  passdb backend = tdbsam:${state}/passdb.tdb
${folders.map((name) => `  ${name} = ${state}`).join('\n')}
  ncalrpc dir = ${state}/ncalrpc
  log file = ${state}/log
  interfaces = 127.0.0.1/8
  bind interfaces only = yes
  disable netbios = yes
  load printers = no
  printcap name = /dev/null
  server min protocol = SMB2_10
  kernel oplocks = no
  posix locking = no
  ea support = yes
[share]
  path = ${share}
  read only = no
  vfs objects = acl_xattr streams_xattr
  kernel share modes = no
`;
}
