import { describe, expect, it } from 'vitest';
import { importKinds } from './import-kinds.ts';

describe('The parent of a document', () => {
  const parentOf = importKinds.find(({ what }) => what === 'containers')!.parent!;

  it('is its account and name', () => {
    expect(parentOf({ accountName: 'one', name: 'box' })).toEqual({ what: 'container', account: 'one', name: 'box' });
  });

  it.each([{ name: 'box' }, { accountName: 'one' }, { accountName: 7, name: 'box' }])(
    'is none if the document is damaged: %j',
    (document) => {
      expect(parentOf(document)).toBeUndefined();
    },
  );
});
