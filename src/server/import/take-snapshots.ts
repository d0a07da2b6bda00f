/** Snapshots of Azurite, through the services: the blob becomes what the snapshot is, and the snapshot is taken. */

import { parseSnapshot, snapshotBlob } from '../../services/blob/snapshots.ts';
import { setBlobTier } from '../../services/blob/tiers.ts';
import { atOnce, attempt, groupBy } from './attempts.ts';
import { propertyOf, textOf } from './azurite-documents.ts';
import type { ImportedDocument, ImportTarget } from './import-kinds.ts';
import type { LokiDocument } from './loki-file.ts';
import { blobPath, explicitTier, NO_CONDITIONS, putBlockBlob } from './take-blobs.ts';
import { putInPlace } from './take-in-place.ts';

/** Before the blobs themselves, which are written over the last of their snapshots. */
export async function takeSnapshots(documents: readonly ImportedDocument[], target: ImportTarget): Promise<void> {
  const groups = groupBy(documents, ({ document }) => blobPath(document));
  await atOnce(groups, async (group) => {
    for (const { document } of group) {
      const name = `${document.containerName}/${document.name}?snapshot=${document.snapshot}`;
      await attempt(name, target, () => takeSnapshot(document, target));
    }
  });
}

async function takeSnapshot(document: LokiDocument, target: ImportTarget): Promise<void> {
  const storage = target.storage(textOf(document, 'accountName'));
  const taken = parseSnapshot(textOf(document, 'snapshot'));
  const isBlockBlob = propertyOf(document, 'blobType') === 'BlockBlob';
  // The tier is set afterwards: no snapshot is taken of an archived blob, and the next state of the blob would keep the tier.
  if (isBlockBlob) await putBlockBlob(storage, target.folder, document);
  else await putInPlace(storage, document, target);
  const base = { container: textOf(document, 'containerName'), blob: textOf(document, 'name'), ...NO_CONDITIONS };
  const { snapshot } = await snapshotBlob(storage, { ...base, metadata: [], taken });
  const tier = isBlockBlob ? explicitTier(document) : undefined;
  if (tier !== undefined) await setBlobTier(storage, { ...base, snapshot, tier, priority: undefined });
}
