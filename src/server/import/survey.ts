/** Reads all databases of an Azurite once, before anything is written: finds damage, counts every kind, and lists the names. */
import { ticksFromUnix } from '../../base/time.ts';
import type { AzuriteFolder, DatabaseName } from './azurite-folder.ts';
import type { NamedParent } from './clashes.ts';
import { type ImportedDocument, type ImportKind, importKinds } from './import-kinds.ts';

export interface ImportProgress {
  readonly what: string;
  readonly done: number;
  readonly total: number;
}

export interface Survey {
  readonly counts: ReadonlyMap<ImportKind, number>;
  /** Containers, queues and tables. */
  readonly parents: readonly NamedParent[];
  /** A message that had not expired then is imported. */
  readonly now: bigint;
}

/** Throws DamagedFile. */
export async function surveyFolder(
  folder: AzuriteFolder,
  onProgress: (progress: ImportProgress) => void,
): Promise<Survey> {
  const now = ticksFromUnix(Date.now());
  const counts = new Map<ImportKind, number>();
  const parents: NamedParent[] = [];
  const total = folder.size();
  let before = 0;
  for (const database of ['blob', 'queue', 'table'] as const satisfies DatabaseName[]) {
    const kinds = importKinds.filter((kind) => kind.database === database);
    let last = 0;
    for await (const { collection, parse, end } of folder.documents(database)) {
      last = end;
      const document = parse();
      for (const kind of kinds.filter((each) => isOf(each, { collection, document }, now))) {
        counts.set(kind, (counts.get(kind) ?? 0) + 1);
        const parent = kind.parent?.(document);
        if (parent) parents.push(parent);
      }
      onProgress({ what: 'reading', done: before + last, total });
    }
    before += last;
  }
  return { counts, parents, now };
}

export function isOf(kind: ImportKind, { collection, document }: ImportedDocument, now: bigint): boolean {
  return kind.isIn(collection) && (kind.when?.(document, now) ?? true);
}
