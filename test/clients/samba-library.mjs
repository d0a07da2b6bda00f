/**
 * unshare --net node test/clients/samba-library.mjs: a session of Samba's Python library, which always connects to port 445, with a server in a
 * network namespace of their own. Prints what the session prints, and ends as it does.
 */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { ShareServiceClient } from '@azure/storage-file-share';
import { start } from '../../dist/index.js';
import { debianPython } from '../../scripts/debian-packages.mjs';
import { ACCOUNT, ACCOUNT_KEY } from '../support/raw-signing.mjs';

const SHARE = 'library';

spawnSync('ip', ['link', 'set', 'lo', 'up']);
const server = await start({ inMemory: true, blobPort: 0, smbPort: 445, log: { level: 'warn' } });
const share = ShareServiceClient.fromConnectionString(server.connectionString).getShareClient(SHARE);
await share.create();
const script = fileURLToPath(new URL('samba-library.py', import.meta.url));
const child = spawn(debianPython, [script, ACCOUNT, ACCOUNT_KEY, SHARE], { stdio: 'inherit' });
const [code] = await once(child, 'close');
await server.stop();
process.exitCode = code ?? 1;
