import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseXml } from '../../base/xml.ts';
import type { BlockChoice } from '../../rules/block-list.ts';
import { createBlockListScanner } from './block-list-scanner.ts';
import { readBlockList } from './block-lists.ts';

async function read(xml: string | Buffer, pieceBytes: number): Promise<BlockChoice[]> {
  const bytes = Buffer.from(xml);
  const sent = {
    length: bytes.length,
    expected: {},
    async *bytes() {
      for (let from = 0; from < bytes.length; from += pieceBytes) yield bytes.subarray(from, from + pieceBytes);
    },
  };
  return (await readBlockList(sent, { md5: false })).blocks;
}

/** By the parser alone. */
function parsed(xml: string): BlockChoice[] | 'refused' {
  try {
    const steps = parseXml(Buffer.from(xml));
    let step = steps.next();
    while (!step.done) step = steps.next();
    const { name, children } = step.value;
    const sources = ['Latest', 'Committed', 'Uncommitted'];
    if (name !== 'BlockList' || children.some((child) => !sources.includes(child.name) || child.children.length > 0))
      return 'refused';
    return children.map((child) => ({ source: child.name as BlockChoice['source'], id: child.text.trim() }));
  } catch {
    return 'refused';
  }
}

const tag = fc.constantFrom('Latest', 'Committed', 'Uncommitted');
const space = fc.constantFrom('', '', '', '\n', '\r\n  ', ' '.repeat(300));
const block = fc
  .tuple(space, tag, fc.constantFrom('MDE=', 'A+/B', ''))
  .map(([gap, name, id]) => `${gap}<${name}>${id}</${name}>`);
const odd = fc.constantFrom(
  ...['<Latest/>', '<Latest> MDE= </Latest>', '<!-- -->', '<Latest a="b">MDE=</Latest>', '<Latest>&#65;AAA</Latest>'],
  ...[
    '<Latest><![CDATA[MDE=]]></Latest>',
    '<Newest>MDE=</Newest>',
    '<Latest>MDE=</Committed>',
    '\u00e9',
    '<',
    '</BlockList>',
  ],
);
const start = fc.constantFrom(
  '',
  '<?xml version="1.0" encoding="utf-8"?>',
  "<?xml version='1.0'?>\n",
  '<?xml version="1.1"?>',
  ' ',
);
const document = fc
  .tuple(start, fc.array(fc.oneof({ weight: 8, arbitrary: block }, { weight: 1, arbitrary: odd })), space)
  .map(([head, blocks, tail]) => `${head}<BlockList>${blocks.join('')}${tail}</BlockList>${tail}`);

describe('A block list', () => {
  it('has the meaning that the parser gives it, in any form and any pieces', async () => {
    await fc.assert(
      fc.asyncProperty(document, fc.integer({ min: 1, max: 400 }), async (xml, pieceBytes) => {
        const found = await read(xml, pieceBytes).catch(() => 'refused' as const);
        expect(found).toEqual(parsed(xml));
      }),
      { numRuns: 500 },
    );
  });

  it('is read without the parser in the form that clients write', () => {
    for (const gap of ['', '\n', '\r\n  ']) {
      const xml = `<?xml version="1.0" encoding="utf-8"?>${gap}<BlockList>${`${gap}<Latest>MDE=</Latest>`.repeat(1_000)}${gap}</BlockList>`;
      const plain = createBlockListScanner(() => {});
      for (let from = 0; from < xml.length; from += 100)
        expect(plain.write(Buffer.from(xml.slice(from, from + 100)))).toBe(true);
      expect(plain.end()).toBe(true);
      expect(plain.blocks).toHaveLength(1_000);
    }
  });

  it('can be replayed byte for byte', () => {
    fc.assert(
      fc.property(document, fc.integer({ min: 1, max: 400 }), (xml, pieceBytes) => {
        const bytes = Buffer.from(xml);
        const plain = createBlockListScanner(() => {});
        let written = 0;
        for (let isPlain = true; isPlain && written < bytes.length; written += pieceBytes)
          isPlain = plain.write(bytes.subarray(written, written + pieceBytes));
        expect(Buffer.concat([...plain.replay()])).toEqual(bytes.subarray(0, written));
      }),
    );
  });

  it('is refused with the line and column of the error', async () => {
    const xml = `<BlockList>${'\n<Latest>MDE=</Latest>'.repeat(2_000)}\n<Newest/></BlockList>`;
    await expect(read(xml, 1_000)).rejects.toMatchObject({ details: { LineNumber: '2002', LinePosition: '2' } });
  });
});
