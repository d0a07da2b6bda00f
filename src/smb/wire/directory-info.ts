/** Information classes of directory entries (MS-FSCC 2.4): what QUERY_DIRECTORY lists. Each level is a fixed part, then the name. */
import { bytes, padding, record, type Struct, u8, u32, u64 } from './struct.ts';

/** What an entry shows of a file or directory; each level has some of it. */
export interface DirectoryEntryInformation {
  readonly creationTime: bigint;
  readonly lastAccessTime: bigint;
  readonly lastWriteTime: bigint;
  readonly changeTime: bigint;
  readonly endOfFile: bigint;
  readonly allocationSize: bigint;
  readonly fileAttributes: number;
  readonly fileId: bigint;
  /** Empty: there is none. */
  readonly shortName: string;
}

const begin = { nextEntryOffset: padding(4), fileIndex: u32 };
const common = {
  ...begin,
  creationTime: u64,
  lastAccessTime: u64,
  lastWriteTime: u64,
  changeTime: u64,
  endOfFile: u64,
  allocationSize: u64,
  fileAttributes: u32,
  fileNameLength: u32,
};
const SHORT_NAME_BYTES = 24;
const shortName = { shortNameLength: u8, reserved: padding(1), shortName: bytes(SHORT_NAME_BYTES) };

export const FileDirectoryInformation = record(common);
export const FileFullDirectoryInformation = record({ ...common, eaSize: u32 });
export const FileBothDirectoryInformation = record({ ...common, eaSize: u32, ...shortName });
export const FileNamesInformation = record({ ...begin, fileNameLength: u32 });
export const FileIdBothDirectoryInformation = record({
  ...common,
  eaSize: u32,
  ...shortName,
  reserved2: padding(2),
  fileId: u64,
});
export const FileIdFullDirectoryInformation = record({ ...common, eaSize: u32, reserved: padding(4), fileId: u64 });

type LevelFields = Omit<DirectoryEntryInformation, 'shortName'> & {
  readonly shortNameLength: number;
  readonly shortName: Buffer;
  readonly fileIndex: number;
  readonly fileNameLength: number;
  readonly eaSize: number;
};

/** By FileInformationClass. */
export const DIRECTORY_LEVELS: ReadonlyMap<number, Struct<LevelFields>> = new Map<number, Struct<LevelFields>>([
  [1, FileDirectoryInformation as Struct<LevelFields>],
  [2, FileFullDirectoryInformation as Struct<LevelFields>],
  [3, FileBothDirectoryInformation as Struct<LevelFields>],
  [12, FileNamesInformation as unknown as Struct<LevelFields>],
  [37, FileIdBothDirectoryInformation as Struct<LevelFields>],
  [38, FileIdFullDirectoryInformation as Struct<LevelFields>],
]);

/** One entry, without padding; `writeChain` joins them. */
export function writeDirectoryEntry(
  level: Struct<LevelFields>,
  name: string,
  information: DirectoryEntryInformation,
): Buffer {
  const encodedName = Buffer.from(name, 'utf16le');
  const shortName = Buffer.alloc(SHORT_NAME_BYTES);
  const shortNameLength = shortName.write(information.shortName, 'utf16le');
  const lengths = { fileNameLength: encodedName.length, shortNameLength };
  const fixed = level.encode({ ...information, ...lengths, shortName, fileIndex: 0, eaSize: 0 });
  return Buffer.concat([fixed, encodedName]);
}
