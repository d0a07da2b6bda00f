/** Infinite leases of Azurite, with their ids: whoever holds one goes on. */

import { INFINITE_SECONDS } from '../../rules/lease.ts';
import { leaseBlob, leaseContainer } from '../../services/blob/leases.ts';
import { atOnce, attempt } from './attempts.ts';
import { textOf } from './azurite-documents.ts';
import type { ImportedDocument, ImportTarget } from './import-kinds.ts';

/** Of blobs and of containers. After the bytes, which nobody else may write then. */
export function takeLeases(documents: readonly ImportedDocument[], target: ImportTarget): Promise<void> {
  return atOnce(documents, ({ document }) => {
    const name = String(document.name);
    const container = document.containerName === undefined ? undefined : String(document.containerName);
    return attempt(container === undefined ? name : `${container}/${name}`, target, async () => {
      const storage = target.storage(textOf(document, 'accountName'));
      const acquire = {
        ...{ action: 'acquire', seconds: INFINITE_SECONDS, proposedId: textOf(document, 'leaseId') },
        ...{ leaseId: undefined, periodSeconds: undefined, conditions: {} },
      };
      if (container === undefined) await leaseContainer(storage, { ...acquire, container: name });
      else await leaseBlob(storage, { ...acquire, container, blob: name });
    });
  });
}
