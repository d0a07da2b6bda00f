import type { SlicedWork } from '../../src/base/time-slices.ts';

/** All of it in one stretch, however often it lets others in. */
export function atOnce<Value>(steps: SlicedWork<Value>, onYield = () => {}): Value {
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
    onYield();
  }
}
