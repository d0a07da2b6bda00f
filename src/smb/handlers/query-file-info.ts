/** The information classes of files that can be queried (MS-FSCC 2.4, MS-FSA 2.1.5.12). */
import { type HandleView, readHandlePath } from '../../services/file/handle-properties.ts';
import { shortNameOf } from '../../services/file/short-names.ts';
import type { FileOpen } from '../file-open.ts';
import { fileIndex, viewNode } from '../file-views.ts';
import { formatFileName } from '../names.ts';
import { SmbError, type StatusName } from '../statuses.ts';
import * as info from '../wire/file-info.ts';
import type { Struct } from '../wire/struct.ts';
import type { InfoClass } from './query-info.ts';

const { FILE_INFO } = info;
const READ_EA = 0x8;
const READ_ATTRIBUTES = 0x80;
/** The structs of Windows, with the first character of the name and padding: less room is refused. */
const NAME_BYTES_MIN = 8;
const ALL_BYTES_MIN = 104;
const STREAM_BYTES_MIN = 32;
const DATA_STREAM = Buffer.from('::$DATA', 'utf16le');

const basicOf = ({ node }: HandleView, { allocation }: FileOpen) => viewNode(node, allocation);
const standardOf = ({ node, isDeletePending }: HandleView, { allocation }: FileOpen) => ({
  ...viewNode(node, allocation),
  numberOfLinks: isDeletePending ? 0 : 1,
  deletePending: isDeletePending ? 1 : 0,
  directory: node.kind === 'directory' ? 1 : 0,
});
const internalOf = ({ node }: HandleView, { tree }: FileOpen) => ({ indexNumber: fileIndex(tree, node) });
const NO_EA = { eaSize: 0 };
const BYTE_ALIGNMENT = { alignmentRequirement: 0 };

/** A class whose values come from the file or directory. */
function ofNode<T>(struct: Struct<T>, values: (view: HandleView, open: FileOpen) => T, rights?: number): InfoClass {
  return {
    size: struct.size,
    query: async (open) => struct.encode(values(await open.view(rights), open)),
  };
}

/** A class whose values come from the open alone. */
function ofOpen<T>(struct: Struct<T>, values: (open: FileOpen) => T): InfoClass {
  return { size: struct.size, query: async (open) => struct.encode(values(open)) };
}

const name = (isAbsolute: boolean): InfoClass => ({
  size: NAME_BYTES_MIN,
  async query({ storage, handle }) {
    const names = await readHandlePath(storage, handle);
    return info.FileNameInformation.encode({ fileName: isAbsolute ? formatFileName(names) : names.join('\\') });
  },
});

/** The name of 8.3 characters, which may be the only one. */
const alternateName: InfoClass = {
  size: NAME_BYTES_MIN,
  async query(open) {
    const { node } = await open.view();
    return info.FileNameInformation.encode({ fileName: shortNameOf(open.tree.shareId, node) ?? node.name });
  },
};

/** There are none, which only a client that may read them learns. */
const fullEa: InfoClass = {
  size: 0,
  async query({ rights }) {
    throw new SmbError(rights & READ_EA ? 'NO_EAS_ON_FILE' : 'ACCESS_DENIED');
  },
};

const all: InfoClass = {
  size: ALL_BYTES_MIN,
  async query(open) {
    const view = await open.view(READ_ATTRIBUTES);
    return info.FileAllInformation.encode({
      basic: basicOf(view, open),
      standard: standardOf(view, open),
      internal: internalOf(view, open),
      ea: NO_EA,
      access: { accessFlags: open.rights },
      position: { currentByteOffset: open.position },
      mode: { mode: open.mode },
      alignment: BYTE_ALIGNMENT,
      fileName: formatFileName(await readHandlePath(open.storage, open.handle)),
    });
  },
};

/** A file has one stream, its data; a directory has none. */
const stream: InfoClass = {
  size: STREAM_BYTES_MIN,
  async query(open) {
    const { node } = await open.view();
    if (node.kind === 'directory') return Buffer.alloc(0);
    const { endOfFile, allocationSize } = viewNode(node);
    const sizes = { streamSize: endOfFile, streamAllocationSize: allocationSize };
    const fixed = { nextEntryOffset: 0, streamNameLength: DATA_STREAM.length, ...sizes };
    return Buffer.concat([info.FileStreamInformation.encode(fixed), DATA_STREAM]);
  },
};

function fileIdBytes(index: bigint): Buffer {
  const bytes = Buffer.alloc(16);
  bytes.writeBigUInt64LE(index);
  return bytes;
}

/** By FileInfoClass; a text is the status of a class that is known and refused. */
export const fileInfoClasses: ReadonlyMap<number, InfoClass | StatusName> = new Map<number, InfoClass | StatusName>([
  [FILE_INFO.basic, ofNode(info.FileBasicInformation, basicOf, READ_ATTRIBUTES)],
  [FILE_INFO.standard, ofNode(info.FileStandardInformation, standardOf)],
  [FILE_INFO.internal, ofNode(info.FileInternalInformation, internalOf)],
  [FILE_INFO.ea, ofNode(info.FileEaInformation, () => NO_EA)],
  [FILE_INFO.access, ofOpen(info.FileAccessInformation, ({ rights }) => ({ accessFlags: rights }))],
  [FILE_INFO.name, name(true)],
  [FILE_INFO.position, ofOpen(info.FilePositionInformation, ({ position }) => ({ currentByteOffset: position }))],
  [FILE_INFO.fullEa, fullEa],
  [FILE_INFO.mode, ofOpen(info.FileModeInformation, ({ mode }) => ({ mode }))],
  [FILE_INFO.alignment, ofOpen(info.FileAlignmentInformation, () => BYTE_ALIGNMENT)],
  [FILE_INFO.all, all],
  [FILE_INFO.alternateName, alternateName],
  [FILE_INFO.stream, stream],
  [
    FILE_INFO.compression,
    ofNode(info.FileCompressionInformation, ({ node }) => ({
      compressedFileSize: viewNode(node).endOfFile,
      ...{ compressionFormat: 0, compressionUnitShift: 0, chunkShift: 0, clusterShift: 0 },
    })),
  ],
  [FILE_INFO.networkOpen, ofNode(info.FileNetworkOpenInformation, basicOf, READ_ATTRIBUTES)],
  [
    FILE_INFO.attributeTag,
    ofNode(
      info.FileAttributeTagInformation,
      ({ node }) => ({ fileAttributes: viewNode(node).fileAttributes, reparseTag: 0 }),
      READ_ATTRIBUTES,
    ),
  ],
  [FILE_INFO.normalizedName, { ...name(false), since: 0x311 }],
  [
    FILE_INFO.id,
    ofNode(info.FileIdInformation, ({ node }, { tree }) => ({
      volumeSerialNumber: tree.shareId,
      fileId: fileIdBytes(fileIndex(tree, node)),
    })),
  ],
]);
