/** IOCTL (MS-SMB2 2.2.31, 2.2.32). */
import { FileId } from './file-id.ts';
import { type Of, padding, record, struct, tail, trailing, u8, u32, u64, utf16 } from './struct.ts';

export const IoctlRequest = struct(57, {
  reserved: padding(2),
  ctlCode: u32,
  fileId: FileId,
  input: tail(4),
  maxInputResponse: u32,
  output: tail(4),
  maxOutputResponse: u32,
  flags: u32,
  reserved2: padding(4),
});
export type IoctlRequest = Of<typeof IoctlRequest>;

export const IoctlResponse = struct(49, {
  reserved: padding(2),
  ctlCode: u32,
  fileId: FileId,
  input: tail(4),
  output: tail(4, 8),
  flags: u32,
  reserved2: padding(4),
});
export type IoctlResponse = Of<typeof IoctlResponse>;

export const IOCTL_IS_FSCTL = 1;

/** MS-FSCC 2.3.49 */
export const PipeWaitRequest = record({
  timeout: u64,
  name: utf16(trailing(4)),
  timeoutSpecified: u8,
  reserved: padding(1),
});

/** MS-FSCC 2.3, MS-SMB2 2.2.31 */
export const FSCTL = {
  dfsGetReferrals: 0x0006_0194,
  dfsGetReferralsEx: 0x0006_01b0,
  pipePeek: 0x0011_400c,
  pipeWait: 0x0011_0018,
  pipeTransceive: 0x0011_c017,
  srvRequestResumeKey: 0x0014_0078,
  srvEnumerateSnapshots: 0x0014_4064,
  srvCopyChunk: 0x0014_40f2,
  srvCopyChunkWrite: 0x0014_80f2,
  lmrRequestResiliency: 0x0014_01d4,
  queryNetworkInterfaceInfo: 0x0014_01fc,
  validateNegotiateInfo: 0x0014_0204,
  getCompression: 0x0009_003c,
  setCompression: 0x0009_c040,
  setReparsePoint: 0x0009_00a4,
  getReparsePoint: 0x0009_00a8,
  createOrGetObjectId: 0x0009_00c0,
  setSparse: 0x0009_00c4,
  queryAllocatedRanges: 0x0009_40cf,
  setZeroData: 0x0009_80c8,
} as const;
