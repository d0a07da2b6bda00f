/** Reads a seed: a file in YAML or JSON, which is a part of YAML, or the value of the option. */
import { isUtf8 } from 'node:buffer';
import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { type Document, isAlias, isMap, isScalar, isSeq, LineCounter, type Node, parseDocument, visit } from 'yaml';
import { StartError } from '../config.ts';
import { SeedNode, type SeedPath } from './seed-node.ts';

export interface ReadSeed {
  readonly root: SeedNode;
  /** Paths in the seed are relative to this folder. */
  readonly folder: string;
}

/** Throws a StartError with the file and the line. */
export function readSeed(seed: string | object): ReadSeed {
  if (typeof seed !== 'string') return { root: new SeedNode(wholeAsBigInt(seed), () => 'seed'), folder: process.cwd() };
  const lines = new LineCounter();
  const document = parseDocument(readText(seed), { lineCounter: lines, prettyErrors: false, intAsBigInt: true });
  const at = (offset: number) => `${seed}:${lines.linePos(offset).line}`;
  const [error] = document.errors;
  if (error) throw new StartError(`${at(error.pos[0])}: ${error.message}.`);
  visit(document, {
    Alias(_, alias) {
      if (!alias.resolve(document))
        throw new StartError(`${at(alias.range![0])}: there is no &${alias.source} before *${alias.source}.`);
    },
  });
  let value: unknown;
  try {
    value = document.toJS();
  } catch (cause) {
    throw new StartError(`${seed}: ${(cause as Error).message}.`);
  }
  const locate = (path: SeedPath) => at(offsetOf(document, path));
  return { root: new SeedNode(value, locate), folder: dirname(resolve(seed)) };
}

function readText(file: string): string {
  let bytes: Buffer;
  try {
    bytes = readFileSync(file);
  } catch (error) {
    throw new StartError(`The seed ${file} cannot be read (${(error as NodeJS.ErrnoException).code}).`);
  }
  if (isUtf8(bytes)) return bytes.toString();
  throw new StartError(`The seed ${file} is not text in UTF-8: save it as that.`);
}

/** Where the key or the item at the end of this path begins. */
function offsetOf(document: Document, path: SeedPath): number {
  let node: unknown = document.contents;
  let offset = (node as Node | null)?.range?.[0] ?? 0;
  for (const part of path) {
    const at = isAlias(node) ? node.resolve(document) : node;
    const pair = isMap(at) ? at.items.find(({ key }) => isScalar(key) && String(key.value) === part) : undefined;
    node = pair ? pair.value : isSeq(at) ? at.items[Number(part)] : undefined;
    offset = ((pair ? pair.key : node) as Node | null | undefined)?.range?.[0] ?? offset;
  }
  return offset;
}

/** As in a file, where 2 is whole and 2.0 is not. JavaScript does not tell them apart: all whole numbers count as 2. */
function wholeAsBigInt(value: unknown): unknown {
  if (typeof value === 'number' && Number.isSafeInteger(value)) return BigInt(value);
  if (Array.isArray(value)) return value.map(wholeAsBigInt);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, wholeAsBigInt(member)]));
}
