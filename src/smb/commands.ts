/** The commands of SMB2, as rows (MS-SMB2 2.2.1.2): code, structs, what each needs, and its handlers. CANCEL is the dispatcher's. */
import { type Command, command } from './command.ts';
import { close } from './handlers/close.ts';
import { create } from './handlers/create.ts';
import { echo } from './handlers/echo.ts';
import { flush } from './handlers/flush.ts';
import { ioctl } from './handlers/ioctl.ts';
import { logoff } from './handlers/logoff.ts';
import { negotiate } from './handlers/negotiate.ts';
import { notSupported } from './handlers/not-supported.ts';
import { oplockBreak } from './handlers/oplock-break.ts';
import { closePipe, flushPipe, openPipe, readPipe, writePipe } from './handlers/pipes.ts';
import { queryDirectory } from './handlers/query-directory.ts';
import { queryInfo } from './handlers/query-info.ts';
import { read } from './handlers/read.ts';
import { sessionSetup } from './handlers/session-setup.ts';
import { setInfo } from './handlers/set-info.ts';
import { treeConnect, treeDisconnect } from './handlers/tree-connect.ts';
import { write } from './handlers/write.ts';
import { ChangeNotifyRequest, ChangeNotifyResponse } from './wire/change-notify.ts';
import { CloseRequest, CloseResponse } from './wire/close.ts';
import { CreateRequest, CreateResponse } from './wire/create.ts';
import { EmptyBody } from './wire/empty.ts';
import { FlushRequest, FlushResponse } from './wire/flush.ts';
import { IoctlRequest, IoctlResponse } from './wire/ioctl.ts';
import { LockRequest, LockResponse } from './wire/lock.ts';
import { NegotiateRequest, NegotiateResponse } from './wire/negotiate.ts';
import { OplockBreakAcknowledgment, OplockBreakRequest } from './wire/oplock-break.ts';
import { QueryDirectoryRequest, QueryDirectoryResponse } from './wire/query-directory.ts';
import { QueryInfoRequest, QueryInfoResponse } from './wire/query-info.ts';
import { ReadRequest, ReadResponse } from './wire/read.ts';
import { SessionSetupRequest, SessionSetupResponse } from './wire/session-setup.ts';
import { SetInfoRequest, SetInfoResponse } from './wire/set-info.ts';
import { TreeConnectRequest, TreeConnectResponse } from './wire/tree-connect.ts';
import { WriteRequest, WriteResponse } from './wire/write.ts';

export const commands: Readonly<Record<string, Command>> = {
  negotiate: command({
    code: 0,
    request: NegotiateRequest,
    response: NegotiateResponse,
    needs: 'connection',
    run: negotiate,
  }),
  sessionSetup: command({
    code: 1,
    request: SessionSetupRequest,
    response: SessionSetupResponse,
    needs: 'connection',
    run: sessionSetup,
  }),
  logoff: command({ code: 2, request: EmptyBody, response: EmptyBody, needs: 'session', run: logoff }),
  treeConnect: command({
    code: 3,
    request: TreeConnectRequest,
    response: TreeConnectResponse,
    needs: 'session',
    run: treeConnect,
  }),
  treeDisconnect: command({
    code: 4,
    request: EmptyBody,
    response: EmptyBody,
    needs: 'tree',
    disk: treeDisconnect,
    pipe: treeDisconnect,
  }),
  create: command({
    code: 5,
    request: CreateRequest,
    response: CreateResponse,
    needs: 'tree',
    disk: create,
    pipe: openPipe,
  }),
  close: command({
    code: 6,
    request: CloseRequest,
    response: CloseResponse,
    needs: 'open',
    disk: close,
    pipe: closePipe,
  }),
  flush: command({
    code: 7,
    request: FlushRequest,
    response: FlushResponse,
    needs: 'open',
    disk: flush,
    pipe: flushPipe,
  }),
  read: command({
    code: 8,
    request: ReadRequest,
    response: ReadResponse,
    needs: 'open',
    payloadBytes: ({ length }) => length,
    disk: read,
    pipe: readPipe,
  }),
  write: command({
    code: 9,
    request: WriteRequest,
    response: WriteResponse,
    needs: 'open',
    payloadBytes: ({ data }) => data.length,
    disk: write,
    pipe: writePipe,
  }),
  lock: command({ code: 10, request: LockRequest, response: LockResponse, needs: 'open', disk: notSupported }),
  ioctl: command({
    code: 11,
    request: IoctlRequest,
    response: IoctlResponse,
    needs: 'tree',
    payloadBytes: ({ input, output, maxInputResponse, maxOutputResponse }) =>
      Math.max(input.length + output.length, maxInputResponse + maxOutputResponse),
    disk: ioctl,
    pipe: ioctl,
  }),
  echo: command({ code: 13, request: EmptyBody, response: EmptyBody, needs: 'connection', run: echo }),
  queryDirectory: command({
    code: 14,
    request: QueryDirectoryRequest,
    response: QueryDirectoryResponse,
    needs: 'open',
    payloadBytes: ({ outputBufferLength }) => outputBufferLength,
    disk: queryDirectory,
  }),
  changeNotify: command({
    code: 15,
    request: ChangeNotifyRequest,
    response: ChangeNotifyResponse,
    needs: 'open',
    payloadBytes: ({ outputBufferLength }) => outputBufferLength,
    disk: notSupported,
  }),
  queryInfo: command({
    code: 16,
    request: QueryInfoRequest,
    response: QueryInfoResponse,
    needs: 'open',
    payloadBytes: ({ input, outputBufferLength }) => Math.max(input.length, outputBufferLength),
    disk: queryInfo,
  }),
  setInfo: command({
    code: 17,
    request: SetInfoRequest,
    response: SetInfoResponse,
    needs: 'open',
    payloadBytes: ({ buffer }) => buffer.length,
    disk: setInfo,
  }),
  oplockBreak: command({
    code: 18,
    request: OplockBreakRequest,
    response: OplockBreakAcknowledgment,
    needs: 'tree',
    disk: oplockBreak,
  }),
};

export const commandsByCode: ReadonlyMap<number, Command> = new Map(
  Object.values(commands).map((row) => [row.code, row]),
);

const namesByCode = new Map(Object.entries(commands).map(([name, { code }]) => [code, name]));

/** For logs, metrics and comparisons. */
export function formatCommand(code: number): string {
  return namesByCode.get(code) ?? 'unknown';
}
