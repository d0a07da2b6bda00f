/** Information classes of file systems (MS-FSCC 2.5). */
import { padding, record, trailing, u8, u32, u64, utf16 } from './struct.ts';

export const FS_INFO = {
  volume: 1,
  size: 3,
  device: 4,
  attribute: 5,
  control: 6,
  fullSize: 7,
  objectId: 8,
  sectorSize: 11,
} as const;

/** The label follows, two bytes after its length. */
export const FileFsVolumeInformation = record({
  volumeCreationTime: u64,
  volumeSerialNumber: u32,
  volumeLabelLength: u32,
  supportsObjects: u8,
  reserved: padding(1),
});

export const FileFsSizeInformation = record({
  totalAllocationUnits: u64,
  availableAllocationUnits: u64,
  sectorsPerAllocationUnit: u32,
  bytesPerSector: u32,
});

export const FileFsDeviceInformation = record({ deviceType: u32, characteristics: u32 });

export const FileFsAttributeInformation = record({
  fileSystemAttributes: u32,
  maximumComponentNameLength: u32,
  fileSystemName: utf16(trailing(4)),
});

export const FileFsFullSizeInformation = record({
  totalAllocationUnits: u64,
  callerAvailableAllocationUnits: u64,
  actualAvailableAllocationUnits: u64,
  sectorsPerAllocationUnit: u32,
  bytesPerSector: u32,
});

export const FileFsSectorSizeInformation = record({
  logicalBytesPerSector: u32,
  physicalBytesPerSectorForAtomicity: u32,
  physicalBytesPerSectorForPerformance: u32,
  fileSystemEffectivePhysicalBytesPerSectorForAtomicity: u32,
  flags: u32,
  byteOffsetForSectorAlignment: u32,
  byteOffsetForPartitionAlignment: u32,
});
