import { partitionConformance } from './conformance.ts';
import { openMemory } from './memory.ts';

partitionConformance('memory', {
  durable: false,
  async open(options) {
    const engine = openMemory(options);
    return { engine, beside: async () => engine, drop: () => engine.close() };
  },
});
