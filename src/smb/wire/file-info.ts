/** Information classes of files (MS-FSCC 2.4): what QUERY_INFO shows and SET_INFO sets. */
import { bytes, type Of, padding, record, trailing, u8, u16, u32, u64, utf16 } from './struct.ts';

export const FILE_INFO = {
  basic: 4,
  standard: 5,
  internal: 6,
  ea: 7,
  access: 8,
  name: 9,
  rename: 10,
  link: 11,
  disposition: 13,
  position: 14,
  fullEa: 15,
  mode: 16,
  alignment: 17,
  all: 18,
  allocation: 19,
  endOfFile: 20,
  alternateName: 21,
  stream: 22,
  pipe: 23,
  compression: 28,
  networkOpen: 34,
  attributeTag: 35,
  validDataLength: 39,
  shortName: 40,
  normalizedName: 48,
  id: 59,
  dispositionEx: 64,
  renameEx: 65,
} as const;

export const FileBasicInformation = record({
  creationTime: u64,
  lastAccessTime: u64,
  lastWriteTime: u64,
  changeTime: u64,
  fileAttributes: u32,
  reserved: padding(4),
});
export type FileBasicInformation = Of<typeof FileBasicInformation>;

export const FileStandardInformation = record({
  allocationSize: u64,
  endOfFile: u64,
  numberOfLinks: u32,
  deletePending: u8,
  directory: u8,
  reserved: padding(2),
});

export const FileInternalInformation = record({ indexNumber: u64 });
export const FileEaInformation = record({ eaSize: u32 });
export const FileAccessInformation = record({ accessFlags: u32 });
export const FilePositionInformation = record({ currentByteOffset: u64 });
export const FileModeInformation = record({ mode: u32 });
export const FileAlignmentInformation = record({ alignmentRequirement: u32 });
export const FileNameInformation = record({ fileName: utf16(trailing(4)) });

export const FileAllInformation = record({
  basic: FileBasicInformation,
  standard: FileStandardInformation,
  internal: FileInternalInformation,
  ea: FileEaInformation,
  access: FileAccessInformation,
  position: FilePositionInformation,
  mode: FileModeInformation,
  alignment: FileAlignmentInformation,
  fileName: utf16(trailing(4)),
});

export const FileNetworkOpenInformation = record({
  creationTime: u64,
  lastAccessTime: u64,
  lastWriteTime: u64,
  changeTime: u64,
  allocationSize: u64,
  endOfFile: u64,
  fileAttributes: u32,
  reserved: padding(4),
});

export const FileAttributeTagInformation = record({ fileAttributes: u32, reparseTag: u32 });

export const FileCompressionInformation = record({
  compressedFileSize: u64,
  compressionFormat: u16,
  compressionUnitShift: u8,
  chunkShift: u8,
  clusterShift: u8,
  reserved: padding(3),
});

/** One entry: a file has no stream but its data. */
export const FileStreamInformation = record({
  nextEntryOffset: u32,
  streamNameLength: u32,
  streamSize: u64,
  streamAllocationSize: u64,
});

export const FileIdInformation = record({ volumeSerialNumber: u64, fileId: bytes(16) });

/** The form of SMB2: MS-FSCC 2.4.42.2. */
export const FileRenameInformation = record({
  replaceIfExists: u8,
  reserved: padding(7),
  rootDirectory: u64,
  fileName: utf16(trailing(4)),
});

export const FileRenameInformationEx = record({
  flags: u32,
  reserved: padding(4),
  rootDirectory: u64,
  fileName: utf16(trailing(4)),
});
export const RENAME_FLAGS = { replaceIfExists: 0x1, posixSemantics: 0x2, ignoreReadOnly: 0x40 } as const;

export const FileDispositionInformation = record({ deletePending: u8 });
export const FileDispositionInformationEx = record({ flags: u32 });
export const DISPOSITION_FLAGS = { delete: 0x1, posixSemantics: 0x2, onClose: 0x8, ignoreReadOnly: 0x10 } as const;

export const FileAllocationInformation = record({ allocationSize: u64 });
export const FileEndOfFileInformation = record({ endOfFile: u64 });
