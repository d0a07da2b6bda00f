/** The information classes of file systems (MS-FSCC 2.5): a share is a volume of the size of its quota. */
import { filetimeFromTicks } from '../../base/time.ts';
import { readShareSizes } from '../../services/file/share-sizes.ts';
import type { FileOpen } from '../file-open.ts';
import { ALLOCATION_UNIT, volumeSerial } from '../file-views.ts';
import type { StatusName } from '../statuses.ts';
import * as info from '../wire/fs-info.ts';
import type { InfoClass } from './query-info.ts';

const { FS_INFO } = info;
const BYTES_PER_SECTOR = 512;
const SECTORS_PER_UNIT = ALLOCATION_UNIT / BYTES_PER_SECTOR;
const DEVICE_DISK = 7;
const DEVICE_IS_MOUNTED = 0x20;
/** Case is kept and does not count, names are UTF-16, there are ACLs, sparse files and quotas; no streams, reparse points, links. */
const CASE_PRESERVED_NAMES = 0x2;
const UNICODE_ON_DISK = 0x4;
const PERSISTENT_ACLS = 0x8;
const SUPPORTS_SPARSE_FILES = 0x40;
const NAME_MAX = 255;
/** The structs of Windows, with the first character of the name and padding: less room is refused. */
const VOLUME_BYTES_MIN = 24;
const ATTRIBUTE_BYTES_MIN = 16;

async function sizesOf({ storage, tree }: FileOpen) {
  const { totalBytes, freeBytes } = await readShareSizes(storage, tree.share);
  const unit = BigInt(ALLOCATION_UNIT);
  return {
    totalAllocationUnits: totalBytes / unit,
    availableAllocationUnits: freeBytes / unit,
    sectorsPerAllocationUnit: SECTORS_PER_UNIT,
    bytesPerSector: BYTES_PER_SECTOR,
  };
}

/** By FileInfoClass; a text is the status of a class that is known and refused. */
export const fsInfoClasses: ReadonlyMap<number, InfoClass | StatusName> = new Map<number, InfoClass | StatusName>([
  [
    FS_INFO.volume,
    {
      size: VOLUME_BYTES_MIN,
      async query({ tree }) {
        const label = Buffer.from(tree.share, 'utf16le');
        const fixed = info.FileFsVolumeInformation.encode({
          // The id of a share is the time of its creation.
          volumeCreationTime: filetimeFromTicks(tree.shareId),
          volumeSerialNumber: volumeSerial(tree),
          volumeLabelLength: label.length,
          supportsObjects: 0,
        });
        return Buffer.concat([fixed, label]);
      },
    },
  ],
  [
    FS_INFO.size,
    {
      size: info.FileFsSizeInformation.size,
      query: async (open) => info.FileFsSizeInformation.encode(await sizesOf(open)),
    },
  ],
  [
    FS_INFO.device,
    {
      size: info.FileFsDeviceInformation.size,
      query: async () =>
        info.FileFsDeviceInformation.encode({ deviceType: DEVICE_DISK, characteristics: DEVICE_IS_MOUNTED }),
    },
  ],
  [
    FS_INFO.attribute,
    {
      size: ATTRIBUTE_BYTES_MIN,
      query: async () =>
        info.FileFsAttributeInformation.encode({
          fileSystemAttributes: CASE_PRESERVED_NAMES | UNICODE_ON_DISK | PERSISTENT_ACLS | SUPPORTS_SPARSE_FILES,
          maximumComponentNameLength: NAME_MAX,
          fileSystemName: 'NTFS',
        }),
    },
  ],
  [FS_INFO.control, 'NOT_SUPPORTED'],
  [
    FS_INFO.fullSize,
    {
      size: info.FileFsFullSizeInformation.size,
      async query(open) {
        const { availableAllocationUnits: available, ...sizes } = await sizesOf(open);
        return info.FileFsFullSizeInformation.encode({
          ...sizes,
          callerAvailableAllocationUnits: available,
          actualAvailableAllocationUnits: available,
        });
      },
    },
  ],
  [FS_INFO.objectId, 'NOT_SUPPORTED'],
  [
    FS_INFO.sectorSize,
    {
      size: info.FileFsSectorSizeInformation.size,
      query: async () =>
        info.FileFsSectorSizeInformation.encode({
          logicalBytesPerSector: BYTES_PER_SECTOR,
          physicalBytesPerSectorForAtomicity: BYTES_PER_SECTOR,
          physicalBytesPerSectorForPerformance: ALLOCATION_UNIT,
          fileSystemEffectivePhysicalBytesPerSectorForAtomicity: BYTES_PER_SECTOR,
          // Aligned to the device, and no seek penalty.
          flags: 0x7,
          byteOffsetForSectorAlignment: 0,
          byteOffsetForPartitionAlignment: 0,
        }),
    },
  ],
]);
