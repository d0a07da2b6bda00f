/**
 * Properties get the same values in every run, so that what passed once passes again; `npm run test:properties` looks for counterexamples with
 * other seeds.
 */
import fc from 'fast-check';

fc.configureGlobal({ seed: Number(process.env.HOLDFAST_PROPERTY_SEED ?? 1) });
