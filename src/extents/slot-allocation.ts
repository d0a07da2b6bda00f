/** Slot allocation: the extents of this process that grow, or in which chunks are being written. */
import type { ExtentFiles } from './extent-files.ts';
import { extentName } from './extents.ts';
import { groupSync } from './group-sync.ts';
import { encodeExtentHeader, HEADER_BYTES, newExtentId } from './slots.ts';

export interface OpenExtent {
  readonly name: string;
  readonly id: Buffer;
  readonly made: Promise<void>;
  readonly sync: () => Promise<void>;
  /** Raised before any await, so that slots never overlap. */
  end: number;
  grows: boolean;
  writers: number;
  /** The error after which nothing is written here any more, never reset: after a failed sync the state of the disk is unknown. */
  broken: unknown;
}

export class OpenExtents {
  private readonly files: ExtentFiles;
  private readonly epoch: bigint;
  private readonly extentBytesMax: number;
  /** By name; an extent that does not grow and has no writers is removed from here. */
  private readonly extents = new Map<string, OpenExtent>();
  /** The one extent that grows; undefined: the next chunk starts one. */
  private growing: OpenExtent | undefined;
  private lastNumber: number;

  constructor(files: ExtentFiles, epoch: bigint, lastNumber: number, extentBytesMax: number) {
    this.files = files;
    this.epoch = epoch;
    this.lastNumber = lastNumber;
    this.extentBytesMax = extentBytesMax;
  }

  get(name: string): OpenExtent | undefined {
    return this.extents.get(name);
  }

  /** Reserves a slot in the extent that grows; the caller is a writer until `release`. */
  allocate(bytes: number): { readonly extent: OpenExtent; readonly offset: number } {
    if (this.growing && this.growing.end > HEADER_BYTES && this.growing.end + bytes > this.extentBytesMax)
      this.seal(this.growing);
    this.growing ??= this.start();
    const extent = this.growing;
    const offset = extent.end;
    extent.end += bytes;
    extent.writers++;
    return { extent, offset };
  }

  release(extent: OpenExtent): void {
    extent.writers--;
    this.closeIfDone(extent);
  }

  seal(extent: OpenExtent): void {
    extent.grows = false;
    if (this.growing === extent) this.growing = undefined;
    this.closeIfDone(extent);
  }

  private start(): OpenExtent {
    const name = extentName(this.epoch, ++this.lastNumber);
    const id = newExtentId();
    const markBroken = (error: unknown): never => {
      extent.broken ??= error;
      this.seal(extent);
      throw error;
    };
    const extent: OpenExtent = {
      name,
      id,
      made: this.files.make(name, encodeExtentHeader(id)).catch(markBroken),
      sync: groupSync(async () => {
        assertUsable(extent);
        await this.files.sync(name).catch(markBroken);
      }),
      end: HEADER_BYTES,
      grows: true,
      writers: 0,
      broken: undefined,
    };
    this.extents.set(name, extent);
    return extent;
  }

  private closeIfDone({ name, grows, writers }: OpenExtent): void {
    if (!grows && writers === 0) this.extents.delete(name);
  }
}

export function assertUsable({ broken }: OpenExtent): void {
  if (broken !== undefined) throw broken;
}
