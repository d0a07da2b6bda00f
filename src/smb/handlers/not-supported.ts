/** Commands that are understood and refused: byte-range locks and change notifications. */
import { SmbError } from '../statuses.ts';

export function notSupported(): never {
  throw new SmbError('NOT_SUPPORTED');
}
