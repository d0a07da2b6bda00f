/** Third-party programs that tests need, and the reason of the skip where one is missing. */
import { spawnSync } from 'node:child_process';
import { debianPython } from '../../scripts/debian-packages.mjs';

export { debianPython };

export const noPythonSdk = answers(debianPython, '-c', 'import azure.storage.blob')
  ? undefined
  : "Microsoft's Python SDK is not installed from Debian (python3-azure-storage)";

export const noPythonTables = answers(debianPython, '-c', 'import azure.data.tables')
  ? undefined
  : "Microsoft's Python SDK for tables is not installed from Debian (python3-azure)";

export const noPythonShares = answers(debianPython, '-c', 'import azure.storage.fileshare')
  ? undefined
  : "Microsoft's Python SDK for file shares is not installed from Debian (python3-azure-storage)";

export const noPytest =
  noPythonSdk ??
  (answers(debianPython, '-c', 'import pytest') ? undefined : 'pytest is not installed from Debian (python3-pytest)');

export const noSystemd = answers('systemd-analyze', '--version') ? undefined : 'systemd is not installed';

export const noRclone = answers('rclone', 'version') ? undefined : 'rclone is not installed';

export const noSmbclient = answers('smbclient', '--version') ? undefined : 'smbclient is not installed';

export const noImpacket = answers(debianPython, '-c', 'import impacket')
  ? undefined
  : 'impacket is not installed from Debian (python3-impacket)';

/** Its programs connect to port 445 alone: they need a network of their own. */
export const noSambaLibrary = !answers(debianPython, '-c', 'import samba')
  ? 'the Python library of Samba is not installed from Debian (python3-samba)'
  : !answers('unshare', '--net', 'ip', 'link', 'set', 'lo', 'up')
    ? 'a network namespace takes root on Linux'
    : undefined;

export const noNmap = answers('nmap', '--version') ? undefined : 'nmap is not installed';

function answers(command: string, ...words: string[]): boolean {
  return spawnSync(command, words, { stdio: 'ignore' }).status === 0;
}
