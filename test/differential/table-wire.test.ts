import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { onEngine, type Running } from '../end-to-end/support.ts';
import { ask, entityPath, newTable } from '../end-to-end/tables.ts';
import { anyCondition, anyEntity, type Entity, filterText, isMet, NAMES, type Value } from './naive-filter.ts';

interface Question {
  readonly condition: fc.TypeOf<typeof anyCondition> | undefined;
  readonly top: number | undefined;
  readonly select: readonly string[] | undefined;
  readonly level: 'minimalmetadata' | 'fullmetadata';
}
