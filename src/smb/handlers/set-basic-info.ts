/** FileBasicInformation set through an open (MS-FSA 2.1.5.14.2): times and attributes. */
import { ticksFromFiletime } from '../../base/time.ts';
import { setHandleProperties } from '../../services/file/handle-properties.ts';
import { STORED_ATTRIBUTES } from '../../services/file/open-request.ts';
import { afterFlush } from '../../services/file/write-times.ts';
import type { FileOpen } from '../file-open.ts';
import { SmbError } from '../statuses.ts';
import type { FileBasicInformation } from '../wire/file-info.ts';

const ATTRIBUTE_DIRECTORY = 0x10;
const ATTRIBUTE_TEMPORARY = 0x100;
/** Of a time: it stays, and operations through this open do not change it; they change it again. */
const STAYS = 0n;
const FREEZE = 0xffff_ffff_ffff_ffffn;
const THAW = 0xffff_ffff_ffff_fffen;
/** The first time that the File service's REST interface has no text for. */
const YEAR_10000 = 0x24c8_5a5e_d1c0_4000n;

export async function setBasic(value: FileBasicInformation, open: FileOpen): Promise<void> {
  const attributes = attributesFrom(value, open);
  const creation = timeFrom(value.creationTime);
  const access = timeFrom(value.lastAccessTime);
  const lastWrite = timeFrom(value.lastWriteTime);
  const change = timeFrom(value.changeTime);
  const times = {
    ...(creation !== undefined && { creation }),
    ...(access !== undefined && { access }),
    ...(lastWrite !== undefined && { lastWrite }),
    // To thaw it is no change, either.
    ...(change !== undefined
      ? { change }
      : (value.changeTime !== STAYS || open.keepsChange) && { change: 'preserve' as const }),
  };
  await setHandleProperties(open.storage, open.handle, { ...(attributes !== undefined && { attributes }), times });
  open.written = afterFlush(open.written);
  open.keepsLastWrite = isFrozen(value.lastWriteTime, open.keepsLastWrite);
  open.keepsChange = isFrozen(value.changeTime, open.keepsChange);
}

/** A time that was set explicitly is frozen, too. */
function isFrozen(filetime: bigint, wasFrozen: boolean): boolean {
  if (filetime === STAYS) return wasFrozen;
  return filetime !== THAW;
}

/** Undefined: the time is not set. */
function timeFrom(filetime: bigint): bigint | undefined {
  if (filetime === STAYS || filetime === FREEZE || filetime === THAW) return undefined;
  if (filetime >= YEAR_10000) throw new SmbError('INVALID_PARAMETER');
  return ticksFromFiletime(filetime);
}

/** Undefined: they stay. */
function attributesFrom({ fileAttributes }: FileBasicInformation, { nodeKind }: FileOpen): number | undefined {
  if (fileAttributes === 0) return undefined;
  const isWrongKind = nodeKind === 'file' ? fileAttributes & ATTRIBUTE_DIRECTORY : fileAttributes & ATTRIBUTE_TEMPORARY;
  if (isWrongKind) throw new SmbError('INVALID_PARAMETER');
  return fileAttributes & STORED_ATTRIBUTES;
}
