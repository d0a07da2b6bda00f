/** What the server gives to every operation that copies. */
import { blobSources } from '../../src/services/blob/blob-source.ts';
import { fileSources } from '../../src/services/file/file-source.ts';

export const localSources = { blob: blobSources, file: fileSources };
