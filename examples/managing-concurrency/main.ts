/**
 * The sample application of Microsoft's article "Managing Concurrency in Microsoft Azure Storage", whose own is gone: what happens when
 * several clients change the same blob, container, entity, message or file.
 *
 *   npm run example                             in a server of its own, whose clock it moves instead of waiting
 *   npm run example -- "<connection string>"    in that account, real or not, without the steps that need SMB
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { start } from 'holdfast';
import { smbAddress } from './smb-client.ts';
import { tell } from './tell.ts';

const given = process.argv[2];
const prefix = `concurrency${Date.now().toString(36)}`;
const print = (line: string) => console.log(line);

if (given === undefined) {
  const server = await start({ inMemory: true, blobPort: 0 });
  const { connectionString, clock, smbUrl } = server;
  try {
    const smb = smbAddress(smbUrl, connectionString);
    await tell({ connectionString, prefix, smb, pass: (seconds) => clock.advance(seconds) }, print);
  } finally {
    await server.stop();
  }
} else {
  await tell({ connectionString: given, prefix, pass: (seconds) => sleep(seconds * 1_000) }, print);
}
