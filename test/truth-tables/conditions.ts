/**
 * The effect of each conditional header on each operation. ETags are 'current' or 'other'; dates stand to the resource's
 * Last-Modified: 'earlier' or 'later' by a second or more, or the 'same' second.
 */
export type ETag = 'current' | 'other';
export type DateWord = 'earlier' | 'same' | 'later';

export interface Asked {
  ifMatch?: '*' | readonly ETag[];
  ifNoneMatch?: '*' | readonly ETag[];
  ifModifiedSince?: DateWord;
  ifUnmodifiedSince?: DateWord;
}

export type Header = keyof Asked;

export type Verdict =
  | 'proceed'
  | 'ConditionNotMet'
  | 'NotModified'
  | 'UnsatisfiableCondition'
  | 'BlobAlreadyExists'
  | 'MultipleConditionHeadersNotSupported'
  /** 404 before any rule is asked. */
  | 'missing';

export interface Operation {
  name: string;
  resource: 'blob' | 'container';
  kind: 'read' | 'write';
  /** If-None-Match:* means "only if new" here. */
  creates: boolean;
  /** The status of its success. */
  status: number;
  /** The conditions it takes; others are ignored. */
  takes: readonly Header[];
  /** Of the blob; undefined: a block blob. */
  type?: 'append' | 'page';
}

export interface ConditionCell {
  title: string;
  operation: Operation;
  exists: boolean;
  asked: Asked;
  verdict: Verdict;
  status: number;
  code?: string;
}

const all: Header[] = ['ifMatch', 'ifNoneMatch', 'ifModifiedSince', 'ifUnmodifiedSince'];
const dates: Header[] = ['ifModifiedSince', 'ifUnmodifiedSince'];

// biome-ignore format: a table
export const operations: Operation[] = [
  { name: 'Get Blob',               resource: 'blob',      kind: 'read',  creates: false, status: 200, takes: all },
  { name: 'Get Blob Properties',    resource: 'blob',      kind: 'read',  creates: false, status: 200, takes: all },
  { name: 'Put Blob',               resource: 'blob',      kind: 'write', creates: true,  status: 201, takes: all },
  { name: 'Set Blob Metadata',      resource: 'blob',      kind: 'write', creates: false, status: 200, takes: all },
  { name: 'Set Blob Properties',    resource: 'blob',      kind: 'write', creates: false, status: 200, takes: all },
  { name: 'Delete Blob',            resource: 'blob',      kind: 'write', creates: false, status: 202, takes: all },
  { name: 'Lease Blob',             resource: 'blob',      kind: 'write', creates: false, status: 201, takes: all },
  { name: 'Put Blob (append blob)', resource: 'blob',      kind: 'write', creates: true,  status: 201, takes: all, type: 'append' },
  { name: 'Append Block',           resource: 'blob',      kind: 'write', creates: false, status: 201, takes: all, type: 'append' },
  { name: 'Append Block From URL',  resource: 'blob',      kind: 'write', creates: false, status: 201, takes: all, type: 'append' },
  { name: 'Append Blob Seal',       resource: 'blob',      kind: 'write', creates: false, status: 200, takes: all, type: 'append' },
  { name: 'Put Blob (page blob)',   resource: 'blob',      kind: 'write', creates: true,  status: 201, takes: all, type: 'page' },
  { name: 'Put Page',               resource: 'blob',      kind: 'write', creates: false, status: 201, takes: all, type: 'page' },
  { name: 'Clear Page',             resource: 'blob',      kind: 'write', creates: false, status: 201, takes: all, type: 'page' },
  { name: 'Put Page From URL',      resource: 'blob',      kind: 'write', creates: false, status: 201, takes: all, type: 'page' },
  { name: 'Set Blob Properties (resize)', resource: 'blob', kind: 'write', creates: false, status: 200, takes: all, type: 'page' },
  { name: 'Set Blob Properties (sequence number)', resource: 'blob', kind: 'write', creates: false, status: 200, takes: all, type: 'page' },
  { name: 'Get Page Ranges',        resource: 'blob',      kind: 'read',  creates: false, status: 200, takes: all, type: 'page' },
  { name: 'Set Container Metadata', resource: 'container', kind: 'write', creates: false, status: 200, takes: ['ifModifiedSince'] },
  { name: 'Set Container ACL',      resource: 'container', kind: 'write', creates: false, status: 200, takes: dates },
  { name: 'Delete Container',       resource: 'container', kind: 'write', creates: false, status: 202, takes: dates },
  { name: 'Lease Container',        resource: 'container', kind: 'write', creates: false, status: 201, takes: dates },
];

const blobReads = operations.filter((operation) => operation.resource === 'blob' && operation.kind === 'read');
const blobWrites = operations.filter((operation) => operation.resource === 'blob' && operation.kind === 'write');
const containerWrites = operations.filter((operation) => operation.resource === 'container');

const answers: Record<Exclude<Verdict, 'proceed' | 'missing'>, { status: number; code: string }> = {
  ConditionNotMet: { status: 412, code: 'ConditionNotMet' },
  NotModified: { status: 304, code: 'ConditionNotMet' },
  UnsatisfiableCondition: { status: 400, code: 'UnsatisfiableCondition' },
  BlobAlreadyExists: { status: 409, code: 'BlobAlreadyExists' },
  MultipleConditionHeadersNotSupported: { status: 400, code: 'MultipleConditionHeadersNotSupported' },
};

/** T and F: the condition by itself is true or false; '-': not sent; several characters: any of them. */
export interface TruthRow {
  ifMatch: string;
  ifUnmodifiedSince: string;
  ifNoneMatch: string;
  ifModifiedSince: string;
  verdict: Verdict;
}

/** The first row that fits decides. */
// biome-ignore format: a table
export const readTruthRows: TruthRow[] = [
  { ifMatch: 'F',   ifUnmodifiedSince: 'TF-', ifNoneMatch: 'TF-', ifModifiedSince: 'TF-', verdict: 'ConditionNotMet' },
  { ifMatch: 'TF-', ifUnmodifiedSince: 'F',   ifNoneMatch: 'TF-', ifModifiedSince: 'TF-', verdict: 'ConditionNotMet' },
  { ifMatch: 'T-',  ifUnmodifiedSince: 'T-',  ifNoneMatch: 'F',   ifModifiedSince: 'F-',  verdict: 'NotModified' },
  { ifMatch: 'T-',  ifUnmodifiedSince: 'T-',  ifNoneMatch: 'F',   ifModifiedSince: 'T',   verdict: 'proceed' },
  { ifMatch: 'T-',  ifUnmodifiedSince: 'T-',  ifNoneMatch: 'T',   ifModifiedSince: 'F',   verdict: 'proceed' },
  { ifMatch: 'T-',  ifUnmodifiedSince: 'T-',  ifNoneMatch: '-',   ifModifiedSince: 'F',   verdict: 'NotModified' },
  { ifMatch: 'T-',  ifUnmodifiedSince: 'T-',  ifNoneMatch: 'T-',  ifModifiedSince: 'T-',  verdict: 'proceed' },
];

/** Every combination of the four headers, each held, unmet or not sent, on each read. */
export const readTruthCells: ConditionCell[] = blobReads.flatMap((operation) =>
  combinations().map(([m, u, n, s]) => {
    const row = readTruthRows.find(
      (each) =>
        each.ifMatch.includes(m) &&
        each.ifUnmodifiedSince.includes(u) &&
        each.ifNoneMatch.includes(n) &&
        each.ifModifiedSince.includes(s),
    );
    const asked: Asked = {
      ...(m === '-' ? {} : { ifMatch: [m === 'T' ? 'current' : 'other'] }),
      ...(u === '-' ? {} : { ifUnmodifiedSince: u === 'T' ? 'same' : 'earlier' }),
      ...(n === '-' ? {} : { ifNoneMatch: [n === 'T' ? 'other' : 'current'] }),
      ...(s === '-' ? {} : { ifModifiedSince: s === 'T' ? 'earlier' : 'same' }),
    };
    return cell(operation, asked, row!.verdict);
  }),
);

// biome-ignore format: a table
const readRows: [asked: Asked, existing: Verdict, missing: Verdict][] = [
  [{ ifMatch: '*' },                    'proceed',                'missing'],
  [{ ifMatch: ['current'] },            'proceed',                'missing'],
  [{ ifMatch: ['other', 'current'] },   'proceed',                'missing'],
  [{ ifMatch: ['other', 'other'] },     'ConditionNotMet',        'missing'],
  [{ ifNoneMatch: '*' },                'UnsatisfiableCondition', 'missing'],
  [{ ifNoneMatch: ['other'] },          'proceed',                'missing'],
  [{ ifNoneMatch: ['other', 'other'] }, 'proceed',                'missing'],
  [{ ifNoneMatch: ['other', 'current'] }, 'NotModified',          'missing'],
  [{ ifModifiedSince: 'earlier' },      'proceed',                'missing'],
  [{ ifModifiedSince: 'same' },         'NotModified',            'missing'],
  [{ ifModifiedSince: 'later' },        'NotModified',            'missing'],
  [{ ifUnmodifiedSince: 'earlier' },    'ConditionNotMet',        'missing'],
  [{ ifUnmodifiedSince: 'same' },       'proceed',                'missing'],
  [{ ifUnmodifiedSince: 'later' },      'proceed',                'missing'],
];

/** Lists, stars, dates and missing blobs, on each read. */
export const readCells: ConditionCell[] = blobReads.flatMap((operation) =>
  readRows.flatMap(([asked, existing, missing]) => [
    cell(operation, asked, existing),
    cell(operation, asked, missing, false),
  ]),
);

const MULTIPLE = 'MultipleConditionHeadersNotSupported';
const UNMET = 'ConditionNotMet';

/** A write to a blob that exists, and Put Blob where there is none; every other write answers 404 there. */
// biome-ignore format: a table
const writeRows: [asked: Asked, existing: Verdict, creating: Verdict, putMissing: Verdict][] = [
  //                                                               other writes  Put Blob   Put Blob, no blob
  [{},                                                             'proceed',    'proceed', 'proceed'],
  [{ ifMatch: '*' },                                               'proceed',    'proceed', UNMET],
  [{ ifMatch: ['current'] },                                       'proceed',    'proceed', UNMET],
  [{ ifMatch: ['other'] },                                         UNMET,        UNMET,     UNMET],
  [{ ifNoneMatch: '*' },                                           UNMET,        'BlobAlreadyExists', 'proceed'],
  [{ ifNoneMatch: ['current'] },                                   UNMET,        UNMET,     'proceed'],
  [{ ifNoneMatch: ['other'] },                                     'proceed',    'proceed', 'proceed'],
  [{ ifModifiedSince: 'earlier' },                                 'proceed',    'proceed', 'proceed'],
  [{ ifModifiedSince: 'same' },                                    UNMET,        UNMET,     'proceed'],
  [{ ifModifiedSince: 'later' },                                   UNMET,        UNMET,     'proceed'],
  [{ ifUnmodifiedSince: 'earlier' },                               UNMET,        UNMET,     'proceed'],
  [{ ifUnmodifiedSince: 'same' },                                  'proceed',    'proceed', 'proceed'],
  [{ ifUnmodifiedSince: 'later' },                                 'proceed',    'proceed', 'proceed'],
  [{ ifMatch: ['current'], ifUnmodifiedSince: 'same' },            'proceed',    'proceed', UNMET],
  [{ ifMatch: ['current'], ifUnmodifiedSince: 'earlier' },         'proceed',    'proceed', UNMET],
  [{ ifMatch: ['other'], ifUnmodifiedSince: 'same' },              UNMET,        UNMET,     UNMET],
  [{ ifMatch: ['other'], ifUnmodifiedSince: 'earlier' },           UNMET,        UNMET,     UNMET],
  [{ ifNoneMatch: ['other'], ifModifiedSince: 'earlier' },         'proceed',    'proceed', 'proceed'],
  [{ ifNoneMatch: ['other'], ifModifiedSince: 'same' },            'proceed',    'proceed', 'proceed'],
  [{ ifNoneMatch: ['current'], ifModifiedSince: 'earlier' },       UNMET,        UNMET,     'proceed'],
  [{ ifNoneMatch: ['current'], ifModifiedSince: 'same' },          UNMET,        UNMET,     'proceed'],
  [{ ifNoneMatch: '*', ifModifiedSince: 'same' },                  UNMET,        'BlobAlreadyExists', 'proceed'],
  [{ ifMatch: ['current', 'other'] },                              MULTIPLE,     MULTIPLE,  MULTIPLE],
  [{ ifNoneMatch: ['other', 'other'] },                            MULTIPLE,     MULTIPLE,  MULTIPLE],
  [{ ifMatch: ['current'], ifNoneMatch: ['other'] },               MULTIPLE,     MULTIPLE,  MULTIPLE],
  [{ ifMatch: '*', ifNoneMatch: '*' },                             MULTIPLE,     MULTIPLE,  MULTIPLE],
  [{ ifMatch: ['current'], ifModifiedSince: 'earlier' },           MULTIPLE,     MULTIPLE,  MULTIPLE],
  [{ ifNoneMatch: ['other'], ifUnmodifiedSince: 'same' },          MULTIPLE,     MULTIPLE,  MULTIPLE],
  [{ ifModifiedSince: 'earlier', ifUnmodifiedSince: 'same' },      MULTIPLE,     MULTIPLE,  MULTIPLE],
  [{ ifMatch: ['current'], ifNoneMatch: ['other'], ifModifiedSince: 'earlier' },   MULTIPLE, MULTIPLE, MULTIPLE],
  [{ ifMatch: ['current'], ifNoneMatch: ['other'], ifUnmodifiedSince: 'same' },    MULTIPLE, MULTIPLE, MULTIPLE],
  [{ ifMatch: ['current'], ifModifiedSince: 'earlier', ifUnmodifiedSince: 'same' }, MULTIPLE, MULTIPLE, MULTIPLE],
  [{ ifNoneMatch: ['other'], ifModifiedSince: 'earlier', ifUnmodifiedSince: 'same' }, MULTIPLE, MULTIPLE, MULTIPLE],
  [{ ifMatch: ['current'], ifNoneMatch: ['other'], ifModifiedSince: 'earlier', ifUnmodifiedSince: 'same' }, MULTIPLE, MULTIPLE, MULTIPLE],
];

export const writeCells: ConditionCell[] = blobWrites.flatMap((operation) =>
  writeRows.flatMap(([asked, existing, creating, putMissing]) => {
    const missing = operation.creates || putMissing === MULTIPLE ? putMissing : 'missing';
    return [cell(operation, asked, operation.creates ? creating : existing), cell(operation, asked, missing, false)];
  }),
);

/** Headers that a container operation does not support are ignored. */
// biome-ignore format: a table
const containerRows: [asked: Asked, bothDates: Verdict, setMetadata: Verdict][] = [
  //                                                          takes both dates  takes If-Modified-Since only
  [{ ifModifiedSince: 'earlier' },                              'proceed',        'proceed'],
  [{ ifModifiedSince: 'same' },                                 UNMET,            UNMET],
  [{ ifModifiedSince: 'later' },                                UNMET,            UNMET],
  [{ ifUnmodifiedSince: 'earlier' },                            UNMET,            'proceed'],
  [{ ifUnmodifiedSince: 'same' },                               'proceed',        'proceed'],
  [{ ifUnmodifiedSince: 'later' },                              'proceed',        'proceed'],
  [{ ifModifiedSince: 'earlier', ifUnmodifiedSince: 'same' },   MULTIPLE,         'proceed'],
  [{ ifMatch: ['other'] },                                      'proceed',        'proceed'],
  [{ ifNoneMatch: ['current'] },                                'proceed',        'proceed'],
  [{ ifNoneMatch: '*' },                                        'proceed',        'proceed'],
];

export const containerCells: ConditionCell[] = containerWrites.flatMap((operation) =>
  containerRows.map(([asked, bothDates, setMetadata]) =>
    cell(operation, asked, operation.takes.includes('ifUnmodifiedSince') ? bothDates : setMetadata),
  ),
);

/** Put Blob with If-None-Match:* on a leased blob: the lease is looked at first, and its id lifts the condition. */
export const leaseLiftCells = [
  { title: 'the id of the active lease', state: 'leased', leaseId: 'A', status: 201 },
  { title: 'the id of the lease that is breaking', state: 'breaking', leaseId: 'A', status: 201 },
  { title: 'no id while leased', state: 'leased', status: 412, code: 'LeaseIdMissing' },
  { title: 'another id', state: 'leased', leaseId: 'B', status: 412, code: 'LeaseIdMismatchWithBlobOperation' },
  { title: 'the id of an expired lease', state: 'expired', leaseId: 'A', status: 412, code: 'LeaseLost' },
  { title: 'the id of a broken lease', state: 'broken', leaseId: 'A', status: 412, code: 'LeaseLost' },
  { title: 'no id, the lease expired', state: 'expired', status: 409, code: 'BlobAlreadyExists' },
] as const;

/** Writes that make nothing: no lease id lifts If-None-Match:* from them. */
export const unliftedOperations = blobWrites.filter(({ creates }) => !creates);

function cell(operation: Operation, asked: Asked, verdict: Verdict, exists = true): ConditionCell {
  const words = Object.entries(asked).map(
    ([name, value]) => `${name} ${Array.isArray(value) ? value.join(',') : value}`,
  );
  const title = `${operation.name}, ${words.join(', ') || 'no condition'}${exists ? '' : ', nothing there'}`;
  return { title, operation, exists, asked, verdict, ...answerOf(operation, verdict) };
}

function answerOf(operation: Operation, verdict: Verdict): { status: number; code?: string } {
  if (verdict === 'proceed') return { status: operation.status };
  if (verdict === 'missing') return { status: 404, code: 'BlobNotFound' };
  return answers[verdict];
}

function combinations(): [string, string, string, string][] {
  const marks = ['T', 'F', '-'];
  return marks.flatMap((m) =>
    marks.flatMap((u) => marks.flatMap((n) => marks.map((s): [string, string, string, string] => [m, u, n, s]))),
  );
}
