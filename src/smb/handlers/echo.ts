/** ECHO (MS-SMB2 3.3.5.17). */
import type { EmptyBody } from '../wire/empty.ts';

export function echo(): EmptyBody {
  return {};
}
