/** srvsvc, the interface by which clients list the shares of a server (MS-SRVS 3.1.4). */

import type { RpcInterface } from './endpoint.ts';
import { NdrReader, NdrWriter } from './ndr.ts';

export interface SharesToList {
  /** In order of their names. */
  list(): Promise<readonly string[]>;
  /** In any case; undefined: there is no such share. */
  find(name: string): Promise<string | undefined>;
  readonly serverName: string;
}

const OPERATION = { netrShareEnum: 15, netrShareGetInfo: 16, netrServerGetInfo: 21 } as const;

/** MS-SRVS 2.2.2.4: a disk; a named pipe that is special. */
const TYPE = { disk: 0, ipc: 0x8000_0003 } as const;

const WERROR = { ok: 0, invalidLevel: 124, netNameNotFound: 2310 } as const;

/** Windows NT, version 10.0, a server of files. */
const PLATFORM_NT = 500;
const SERVER_TYPE = 0x0000_0003 | 0x0000_8000;
const UNLIMITED = 0xffff_ffff;

interface ListedName {
  readonly name: string;
  readonly type: number;
  readonly comment: string;
}

const ipc: ListedName = { name: 'IPC$', type: TYPE.ipc, comment: 'IPC Service' };

export function srvsvc(shares: SharesToList): RpcInterface {
  return {
    pipe: 'srvsvc',
    // 4b324fc8-1670-01d3-1278-5a47bf6ee188 version 3.0
    syntax: Buffer.from('c84f324b7016d30112785a47bf6ee18803000000', 'hex'),
    async call(operation, stub) {
      if (operation === OPERATION.netrShareEnum) return enumerate(new NdrReader(stub), shares);
      if (operation === OPERATION.netrShareGetInfo) return shareInfo(new NdrReader(stub), shares);
      if (operation === OPERATION.netrServerGetInfo) return serverInfo(new NdrReader(stub), shares);
      return undefined;
    },
  };
}

/** The fields of a share at each level, in the order of MS-SRVS 2.2.4.22 and following. */
const shareFields: Readonly<Record<number, (writer: NdrWriter, share: ListedName) => void>> = {
  0: (writer, { name }) => writer.text(name),
  1: writeNameTypeComment,
  2: (writer, share) => {
    writeNameTypeComment(writer, share);
    writer.u32(0);
    writer.u32(UNLIMITED);
    writer.u32(0);
    writer.text('');
    writer.u32(0);
  },
  501: (writer, share) => {
    writeNameTypeComment(writer, share);
    writer.u32(0);
  },
  1005: (writer) => writer.u32(0),
};

function writeNameTypeComment(writer: NdrWriter, { name, type, comment }: ListedName): void {
  writer.text(name);
  writer.u32(type);
  writer.text(comment);
}

/** Levels of which a list makes no sense. */
const SINGLE_ONLY = 1005;

async function enumerate(reader: NdrReader, shares: SharesToList): Promise<Buffer> {
  reader.optionalText();
  const level = reader.u32();
  const writer = new NdrWriter();
  writer.u32(level);
  writer.u32(level);
  const write = level === SINGLE_ONLY ? undefined : shareFields[level];
  if (!write) {
    writer.u32(0);
    return endEnumeration(writer, 0, WERROR.invalidLevel);
  }
  const listed = [...(await shares.list()).map(diskShare), ipc];
  writer.pointer(() => {
    writer.u32(listed.length);
    writer.pointer(() => {
      writer.u32(listed.length);
      for (const share of listed) write(writer, share);
    });
  });
  writer.flush();
  return endEnumeration(writer, listed.length, WERROR.ok);
}

function endEnumeration(writer: NdrWriter, total: number, status: number): Buffer {
  writer.u32(total);
  // No handle to resume by: the list is whole.
  writer.u32(0);
  writer.u32(status);
  return writer.finish();
}

async function shareInfo(reader: NdrReader, shares: SharesToList): Promise<Buffer> {
  reader.optionalText();
  const name = reader.text();
  const level = reader.u32();
  const isIpc = name.toUpperCase() === ipc.name;
  const found = isIpc ? ipc.name : await shares.find(name);
  const share = isIpc ? ipc : found === undefined ? undefined : diskShare(found);
  const write = shareFields[level];
  const writer = new NdrWriter();
  writer.u32(level);
  if (share && write) writer.pointer(() => write(writer, share));
  else writer.u32(0);
  writer.flush();
  writer.u32(share ? (write ? WERROR.ok : WERROR.invalidLevel) : WERROR.netNameNotFound);
  return writer.finish();
}

async function serverInfo(reader: NdrReader, { serverName }: SharesToList): Promise<Buffer> {
  reader.optionalText();
  const level = reader.u32();
  const writer = new NdrWriter();
  writer.u32(level);
  const isKnown = level === 100 || level === 101;
  if (!isKnown) writer.u32(0);
  else {
    writer.pointer(() => {
      writer.u32(PLATFORM_NT);
      writer.text(serverName);
      if (level === 100) return;
      writer.u32(10);
      writer.u32(0);
      writer.u32(SERVER_TYPE);
      writer.text('');
    });
  }
  writer.flush();
  writer.u32(isKnown ? WERROR.ok : WERROR.invalidLevel);
  return writer.finish();
}

function diskShare(name: string): ListedName {
  return { name, type: TYPE.disk, comment: '' };
}
