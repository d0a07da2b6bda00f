/** What an open does if its name is taken, and if it is not: the create dispositions of MS-SMB2 2.2.13 and MS-FSA 2.1.5.1. */
import { ARCHIVE, HIDDEN, isReadOnly, SYSTEM } from './attributes.ts';
import { DELETE, WRITE } from './share-mode.ts';

export type Disposition = 'supersede' | 'open' | 'create' | 'openIf' | 'overwrite' | 'overwriteIf';
export type OpenAction = 'opened' | 'created' | 'overwritten' | 'superseded';

interface DispositionRow {
  readonly found: Exclude<OpenAction, 'created'> | 'ResourceAlreadyExists';
  readonly absent: 'created' | 'ResourceNotFound';
  /** What is done to a file that is found, beside the access that is asked for. */
  readonly access: number;
}

const DISPOSITIONS: Readonly<Record<Disposition, DispositionRow>> = {
  supersede: { found: 'superseded', absent: 'created', access: DELETE },
  open: { found: 'opened', absent: 'ResourceNotFound', access: 0 },
  create: { found: 'ResourceAlreadyExists', absent: 'created', access: 0 },
  openIf: { found: 'opened', absent: 'created', access: 0 },
  overwrite: { found: 'overwritten', absent: 'ResourceNotFound', access: WRITE },
  overwriteIf: { found: 'overwritten', absent: 'created', access: WRITE },
};

export const dispositionRow = (disposition: Disposition): DispositionRow => DISPOSITIONS[disposition];

/** Whether a file may lose its bytes to an open with these attributes: a hidden or system file only to one that names the attribute too. */
export function mayOverwrite(current: number, asked: number): boolean {
  return !isReadOnly(current) && (current & (HIDDEN | SYSTEM) & ~asked) === 0;
}

/** The attributes of a file that lost its bytes: superseded, it is as new. */
export function attributesAfter(action: 'overwritten' | 'superseded', current: number, asked: number): number {
  return (action === 'superseded' ? asked : current | asked) | ARCHIVE;
}
