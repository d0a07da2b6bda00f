import { extentsConformance } from './conformance.ts';
import { openMemoryExtents } from './memory.ts';

extentsConformance('memory', {
  durable: false,
  async open(options) {
    const extents = openMemoryExtents(options);
    return { extents, drop: () => extents.close() };
  },
});
