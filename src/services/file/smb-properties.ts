/** SMB properties: what a request asks for, and what the directory or file has then. */
import type { Instant, Transaction } from '../../partition/partition.ts';
import { attributesOfNew, withKind } from '../../rules/file/attributes.ts';
import { type AskedTimes, resolveTimes } from '../../rules/file/times.ts';
import type { NodeKind, SmbProperties } from './node-rows.ts';
import { type AskedPermission, type PermissionSemantics, ROOT_PERMISSION, resolvePermission } from './permissions.ts';
import type { ShareKeys } from './rows.ts';

export { formatAttributes } from '../../rules/file/attributes.ts';

/** What is undefined stays, except for the change time, which is the present; of a new node it is the default. */
export interface AskedSmb {
  readonly attributes?: number | 'preserve' | 'source' | undefined;
  readonly times?: Partial<AskedTimes> | undefined;
  readonly permission?: AskedPermission | undefined;
  /** Of a new node: `restore` takes attributes and a named permission as they are. */
  readonly semantics?: PermissionSemantics | undefined;
  /** Of a new file: whether it is marked for the next backup, whatever attributes are asked for. */
  readonly setsArchive?: boolean | undefined;
}

/** What a copy takes over from the file that is copied, if the request asks for it. */
export interface SmbSource extends Omit<SmbProperties, 'permission'> {
  /** The descriptor itself: the source may be in another share. */
  readonly permission: Buffer;
}

export interface SmbTarget {
  readonly kind: NodeKind;
  /** Whose permission a new node inherits. */
  readonly parent: Pick<SmbProperties, 'permission'>;
  /** Undefined: the node is new. */
  readonly current: SmbProperties | undefined;
  readonly source?: SmbSource | undefined;
}

const NEW = {
  attributes: 0,
  times: { creation: 'now', lastWrite: 'now', change: 'now' },
  permission: 'inherit',
  semantics: 'new',
} as const satisfies AskedSmb;

const CHANGED = {
  attributes: 'preserve',
  times: { creation: 'preserve', lastWrite: 'preserve', change: 'now' },
  permission: 'preserve',
  semantics: 'restore',
} as const satisfies AskedSmb;

/** Of the root directory of a new share. */
export function rootSmb(now: Instant): SmbProperties {
  const times = { creation: now, lastWrite: now, change: now };
  return { attributes: withKind(0, 'directory'), times, permission: ROOT_PERMISSION };
}

export async function resolveSmb(
  tx: Transaction,
  share: ShareKeys,
  asked: AskedSmb,
  { kind, parent, current, source }: SmbTarget,
): Promise<SmbProperties> {
  const defaults = current ? CHANGED : NEW;
  const semantics = asked.semantics ?? defaults.semantics;
  const attributes = asked.attributes ?? defaults.attributes;
  const wanted = typeof attributes === 'number' ? attributes : ((source ?? current)?.attributes ?? 0);
  const permission = await resolvePermission(tx, share, asked.permission ?? defaults.permission, {
    kind,
    semantics,
    parent: parent.permission,
    current: current?.permission,
    source: source?.permission,
  });
  return {
    attributes:
      semantics === 'new' && asked.setsArchive !== false ? attributesOfNew(wanted, kind) : withKind(wanted, kind),
    times: resolveTimes({ ...defaults.times, ...asked.times }, tx.now, source?.times ?? current?.times),
    permission,
  };
}
