/** By row: the ratio of the experiment to Azurite on the machine where the floors were set, and the floor: docs/adr/0024. */
const experiment = {
  'Put Blob 1 KiB, 1 client': [2.7, 2.5],
  'Put Blob 1 KiB, 64 clients': [17, 12],
  'Get Blob 1 KiB, 1 client': [6, 5],
  'Get Blob 1 KiB, 64 clients': [8, 7],
  'Put Blob 1 MiB, 16 clients': [1.9, 2],
  'Table insert, 1 client': [1.1, 1.1],
  'Table insert, 64 clients': [3.8, 4],
  'Table get entity, 64 clients': [6, 6],
  'Table batch of 100, 16 clients': [14, 10],
  'Queue put, 64 clients': [23, 15],
  'Queue get + delete, depth 10': [1, 1],
};
const shares = Object.entries(experiment).map(([title, [reached, floor]]) => [
  `${title}, against the experiment`,
  { atLeast: true, floor: Math.round((100 * floor) / reached) / 100 },
]);

/** What a file costs more than a blob: its path, its directory's times, its share's usage. */
const files = [
  ...[1, 16, 64].flatMap((clients) =>
    [
      ['Create File with', 'Put Blob'],
      ['Get File of', 'Get Blob'],
      ['Delete File of', 'Delete Blob'],
    ].map(([title, peer]) => `${title} 4 KiB, ${clients === 1 ? '1 client' : `${clients} clients`}, against ${peer}`),
  ),
  'Upload of 256 MiB in ranges of 4 MiB, 4 at a time, against blocks',
  'Download of a file of 256 MiB, against a blob',
].map((title) => [title, { atLeast: true, floor: 0.67 }]);

/** The floor and the target of each row. Ratios are Holdfast's to Azurite's in the same round, or to another's. */
export const targets = {
  ...Object.fromEntries([...shares, ...files]),
  'Put Blob 1 KiB, 1 client, against the limit': { atLeast: true, floor: 0.5, aim: 0.75 },
  'Get Blob 1 KiB, 1 client, against the limit': { atLeast: true, floor: 0.5, aim: 0.75 },
  'Put Blob 1 KiB, 1 client': { atLeast: true, floor: 2.5, aim: 4 },
  'Put Blob 1 KiB, 64 clients': { atLeast: true, floor: 12, aim: 20 },
  'Get Blob 1 KiB, 1 client': { atLeast: true, floor: 5, aim: 10 },
  'Get Blob 1 KiB, 64 clients': { atLeast: true, floor: 7, aim: 20 },
  'Put Blob 1 MiB, 16 clients': { atLeast: true, floor: 2, aim: 3 },
  'Put Blob 1 MiB, 16 clients, four lanes of MD5 against one': { atLeast: true, floor: 1.1 },
  'Get Blob 1 MiB, 16 clients': { atLeast: true, floor: 2.5, aim: 5 },
  'Upload of 256 MiB, blocks of 8 MiB, 4 at a time': { atLeast: true, floor: 4, aim: 6 },
  'Download of 256 MiB': { atLeast: true, floor: 1.8, aim: 2.5 },
  'Copy Blob of 256 MiB within the account, 64 clients': { atLeast: true, floor: 5 },
  'Copy Blob, of 256 MiB against 1 MiB': { floor: 1.3 },
  'List page of 5,000 among 100,000 blobs': { atLeast: true, floor: 25, aim: 40 },
  'Find Blobs by Tags, 1,000 of 100,000': { atLeast: true, floor: 5 },
  'List page, among 100,000 against 10,000': { floor: 1.3, aim: 1.1 },
  'One blob against 64, writes under its lease': { atLeast: true, floor: 0.25 },
  'One blob against 64, If-Match counter': { atLeast: true, floor: 0.25 },
  'One blob against 64, lease as mutex': { atLeast: true, floor: 0.25 },
  'Blob Batch, delete of 256': { atLeast: true, floor: 5 },
  'Snapshot Blob of 1 KiB, 1 client': { atLeast: true, floor: 3 },
  'Snapshot Blob of 1 KiB, 16 clients': { atLeast: true, floor: 10 },
  'Snapshot Blob of 1 GiB, 1 client': { atLeast: true, floor: 3 },
  'Snapshot Blob of 1 GiB, 16 clients': { atLeast: true, floor: 10 },
  'Append Block 1 KiB, 1 client': { atLeast: true, floor: 2 },
  'Append Block 1 KiB, 16 clients on one blob': { atLeast: true, floor: 10 },
  'Append Block 1 KiB, 64 clients on 64 blobs': { atLeast: true, floor: 10 },
  'Put Page 4 KiB, 1 client': { atLeast: true, floor: 2 },
  'Put Page 4 KiB, 16 clients': { atLeast: true, floor: 10 },
  'Get Page Ranges of 100,000 ranges': { atLeast: true, floor: 2 },
  'Snapshot Blob of 8 TiB with 1 GiB written, 1 client': { atLeast: true, floor: 2 },
  'Snapshot Blob of 8 TiB, with 1 GiB written against 1 MiB': { floor: 1.3 },
  'Snapshot Blob, of 1 GiB against 1 KiB': { floor: 1.3 },
  'List page of 5,000 among 100,000 snapshots': { atLeast: true, floor: 3 },
  'Start to first answer': { floor: 500, aim: 300 },
  'Private memory at start': { floor: 120, aim: 70 },
  'Private memory with 100,000 blobs': { floor: 250, aim: 150 },
  'Delete Container, answered': { floor: 50 },
  'Delete Container, p99 of Put Blob while the sweeper runs': { floor: 2 },
  'Put Blob at 1,000,000 blobs against 1,000': { floor: 1.3 },
  'Get Blob at 1,000,000 blobs against 1,000': { floor: 1.3 },
  'Table insert, 1 client': { atLeast: true, floor: 1.1, aim: 2 },
  'Table insert, 64 clients': { atLeast: true, floor: 4, aim: 8 },
  'Table get entity, 64 clients': { atLeast: true, floor: 6, aim: 10 },
  'Table query of 1,000 among 100,000': { atLeast: true, floor: 4, aim: 10 },
  'Table batch of 100, 16 clients': { atLeast: true, floor: 10, aim: 20 },
  'Table insert at 1,000,000 entities against 1,000': { floor: 1.3 },
  'Table get entity at 1,000,000 entities against 1,000': { floor: 1.3 },
  'Table query of 1,000 at 1,000,000 entities against 1,000': { floor: 1.3 },
  'Queue put, 64 clients': { atLeast: true, floor: 15, aim: 25 },
  'Queue get + delete, depth 10': { atLeast: true, floor: 1, aim: 1.5 },
  'Queue get + delete, depth 13,000': { atLeast: true, floor: 100, aim: 150 },
  'Queue get + delete, depth 100,000': { atLeast: true, floor: 1_000, aim: 2_000 },
  'Queue put, get and delete at 1,000,000 messages against 1,000': { floor: 1.3 },
  'List page of 5,000 files, among 1,000,000 against 10,000': { floor: 1.3 },
  'Rename of a directory with 1,000,000 files below, against 10,000': { floor: 1.3 },
  'Snapshot Share of 1,000,000 files, against 1,000': { floor: 1.3 },
  'Get File of 4 KiB at the 200th snapshot, against the share': { floor: 1.3 },
};
/** Of our event loop, under each row. */
export const LOOP_P99_MAX = 10;

export function verdictOf(title, value) {
  const target = targets[title];
  if (!target || value === undefined) return undefined;
  const { floor, aim, atLeast } = target;
  const reaches = (bound) => (atLeast ? value >= bound : value <= bound);
  const verdict = aim !== undefined && reaches(aim) ? 'aim reached' : reaches(floor) ? 'floor held' : 'BELOW FLOOR';
  const ofAim = aim === undefined ? undefined : atLeast ? value / aim : aim / value;
  return { floor, aim, atLeast: atLeast ?? false, verdict, ofAim };
}
