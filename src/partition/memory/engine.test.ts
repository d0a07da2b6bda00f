import { partitionConformance } from '../conformance/suite.ts';
import { openMemory } from './engine.ts';

partitionConformance('memory', {
  durable: false,
  async open(options) {
    const engine = openMemory(options);
    return { engine, beside: async () => engine, drop: () => engine.close() };
  },
});
