/**
 * Files that SMB clients hold open while PostgreSQL fails over. It empties the table of the handles, so whoever holds one has to notice: a file is
 * held until the failover, and from then on no write through the old handle is acknowledged.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { ACCESS, DISPOSITION, SHARE, SmbClient } from '../../examples/managing-concurrency/smb-client.ts';
import type { FileId } from '../../src/smb/wire/file-id.ts';
import { FileDispositionInformation } from '../../src/smb/wire/file-info.ts';
import { SetInfoRequest } from '../../src/smb/wire/set-info.ts';
import type { Server } from '../support/restartable-servers.ts';
import { connect } from '../support/signed-client.mjs';
import { account, accountKey } from '../support/test-server.ts';

const FILES = 'failover';
const SET_INFO = 17;
const MARK = { infoType: 1, fileInfoClass: 13, additionalInformation: 0 };
const HELD = { access: ACCESS.read | ACCESS.write | ACCESS.delete, share: SHARE.none };
const ATTEMPTS_MAX = 20;
const ATTEMPT_MILLISECONDS = 100;
const BYTES = Buffer.from('acknowledged through the handle');
const LATER = Buffer.from('written by REST after the fail.');

interface Holder {
  readonly client: SmbClient;
  readonly held: FileId;
  readonly file: string;
  readonly marked: string;
}

export interface HeldFiles {
  /** After a failover: nothing of the handles is left, and nothing that was acknowledged is lost. */
  verify(): Promise<string[]>;
}

/** One file is held alone and another is marked for deletion through each server. */
export async function holdFiles(servers: readonly Server[], round: number): Promise<HeldFiles> {
  const rests = servers.map((server) => connect(server.originOf('File')!));
  await rests[0]!.send('PUT', `/${FILES}?restype=share`);
  const holders = await Promise.all(servers.map((server, i) => hold(server, `${round}-${i}`)));
  const faults: string[] = [];
  const expectAnswer = async (what: string, asked: ReturnType<(typeof rests)[0]['send']>, expected: string) => {
    const { status, code } = await asked;
    const told = `${status} ${code ?? ''}`.trim();
    if (told !== expected) faults.push(`${what}: ${told}, not ${expected}`);
  };
  for (const [i, { file, marked }] of holders.entries()) {
    const other = rests[(i + 1) % rests.length]!;
    await expectAnswer(`GET ${file}`, other.send('GET', `/${FILES}/${file}`), '409 SharingViolation');
    await expectAnswer(`GET ${marked}`, other.send('GET', `/${FILES}/${marked}`), '409 SMBDeletePending');
  }
  return {
    async verify() {
      for (const [i, { client, held, file, marked }] of holders.entries()) {
        const other = rests[(i + 1) % rests.length]!;
        const { status, body } = await other.send('GET', `/${FILES}/${file}`);
        if (status !== 200 || !body.equals(BYTES)) faults.push(`GET ${file}: ${status} ${body}`);
        await expectAnswer(`GET ${marked}`, other.send('GET', `/${FILES}/${marked}`), '200');
        const range = { 'x-ms-write': 'update', 'x-ms-range': `bytes=0-${LATER.length - 1}` };
        const written = other.send('PUT', `/${FILES}/${file}?comp=range`, { headers: range, body: LATER });
        await expectAnswer(`PUT ${file}`, written, '201');
        const isRefused = await client.write(held, 0n, Buffer.from('too late')).then(
          () => false,
          () => true,
        );
        if (!isRefused) faults.push(`the handle of ${file} outlives the failover`);
        const found = (await other.send('GET', `/${FILES}/${file}`)).body;
        if (!found.equals(LATER)) faults.push(`GET ${file}: ${found} after a write by REST`);
        await client.end();
        const again = await holdAgain(servers[i]!, `${round}-${i}`);
        if (again instanceof Error) faults.push(`${file} cannot be opened again: ${again.message}`);
        else await again.client.end();
      }
      for (const rest of rests) rest.close();
      return faults;
    },
  };
}

/** A process that notices the failover ends all its connections: one that was made just before is made again, as clients do. */
async function holdAgain(server: Server, name: string): Promise<Holder | Error> {
  let failure = new Error('never tried');
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
    try {
      return await hold(server, name);
    } catch (error) {
      failure = error as Error;
    }
    await sleep(ATTEMPT_MILLISECONDS);
  }
  return failure;
}

async function hold(server: Server, name: string): Promise<Holder> {
  const { hostname: host, port } = new URL(server.smbUrl()!);
  const client = await SmbClient.connect({
    ...{ host, port: Number(port), share: FILES, user: account, password: accountKey },
  });
  const [file, marked] = [`held-${name}`, `marked-${name}`];
  const opened = { ...HELD, disposition: DISPOSITION.openIf };
  const held = await client.open(file, opened);
  await client.write(held, 0n, BYTES);
  const fileId = await client.open(marked, opened);
  const buffer = FileDispositionInformation.encode({ deletePending: 1 });
  await client.request(SET_INFO, SetInfoRequest, { ...MARK, fileId, buffer });
  return { client, held, file, marked };
}
