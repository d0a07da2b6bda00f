/** The rules of names, metadata and tags, in words for whoever writes a seed, each with the line that breaks it. */
import { parsePath } from '../../rules/file/names.ts';
import {
  blobNameFault,
  containerNameFault,
  metadataFault,
  queueNameFault,
  shareNameFault,
  tableNameFault,
} from '../../rules/names.ts';
import { type Tag, tagsFault } from '../../rules/tags.ts';
import type { SeedNode } from './seed-node.ts';

const LIKE_HOSTS = 'has 3 to 63 lower-case letters, digits and single -';
const names = {
  container: { findFault: containerNameFault, rule: LIKE_HOSTS },
  queue: { findFault: queueNameFault, rule: LIKE_HOSTS },
  table: { findFault: tableNameFault, rule: 'has 3 to 63 letters and digits, and begins with a letter' },
  blob: { findFault: blobNameFault, rule: 'has 1 to 1,024 characters, in at most 254 parts between /' },
  share: { findFault: shareNameFault, rule: LIKE_HOSTS },
  file: {
    findFault: filePathFault,
    rule: 'is a path of up to 2,048 characters, with parts of up to 255 that have none of " \\ : | < > * ?',
  },
};

function filePathFault(path: string): string | undefined {
  const parsed = parsePath(path);
  if (typeof parsed === 'string') return parsed;
  return parsed.length === 0 ? 'InvalidUri' : undefined;
}

/** The name under which the node stands. */
export function checkedName(node: SeedNode, what: keyof typeof names): string {
  const { findFault, rule } = names[what];
  if (findFault(node.name)) throw node.fault(`the name of a ${what} ${rule}`);
  return node.name;
}

const METADATA_RULES: Readonly<Record<NonNullable<ReturnType<typeof metadataFault>>, string>> = {
  EmptyMetadataKey: 'metadata has a name',
  InvalidMetadata:
    'a name of metadata has letters, digits and _, does not begin with a digit, and is there once, whatever its case',
  MetadataTooLarge: 'metadata has at most 8 KiB',
};

export function readMetadata(node: SeedNode | undefined): readonly (readonly [name: string, value: string])[] {
  return readPairs(node, (field) => field.headerText(), metadataFault, METADATA_RULES);
}

const TAG_RULES: Readonly<Record<NonNullable<ReturnType<typeof tagsFault>>, string>> = {
  EmptyTagName: 'a tag has a name',
  DuplicateTagNames: 'a tag is there once',
  InvalidTags: 'tags have letters, digits, spaces and + - . / : = _',
  TagsTooLarge: 'a blob has at most 10 tags, with names of up to 128 characters and values of up to 256',
};

export function readTags(node: SeedNode): readonly Tag[] {
  return readPairs(node, (field) => field.text(), tagsFault, TAG_RULES);
}

/** A fault belongs to the first field with which the fields are faulty. */
function readPairs<Fault extends string>(
  node: SeedNode | undefined,
  read: (field: SeedNode) => string,
  findFault: (pairs: readonly Tag[]) => Fault | undefined,
  rules: Readonly<Record<Fault, string>>,
): readonly Tag[] {
  const pairs: Tag[] = [];
  for (const field of node?.entries() ?? []) {
    pairs.push([field.name, read(field)]);
    const fault = findFault(pairs);
    if (fault) throw field.fault(rules[fault]);
  }
  return pairs;
}
