/** Known bugs, one line each: `find` occurs once in `file`. The tests named with it must turn red. */
export const mutants = [
  {
    name: 'a lease is not asked for its id',
    file: 'src/services/blob/requests.ts',
    find: "if (verdict !== 'proceed') throw leaseError(",
    replace: "if (verdict === 'LeaseLost') throw leaseError(",
    tests: ['test/end-to-end/lease-tables.test.ts'],
  },
  {
    name: 'an unmet condition on a write passes',
    file: 'src/rules/conditions.ts',
    find: "    if (!names(ifMatch, found)) return 'ConditionNotMet';",
    replace: '',
    tests: ['src/rules/conditions.test.ts'],
  },
  {
    name: 'a commit does not look at its ranges again',
    file: 'src/partition/verify.ts',
    find: 'of commit.ranges)',
    replace: 'of commit.ranges.slice(0, 0))',
    tests: ['src/partition/memory.test.ts'],
  },
  {
    name: 'a commit does not look at its rows again',
    file: 'src/partition/verify.ts',
    find: 'of commit.checks)',
    replace: 'of commit.checks.slice(0, 0))',
    tests: ['src/partition/memory.test.ts'],
  },
  {
    name: 'a commit is answered before it is on disk',
    file: 'src/partition/lmdb-files.ts',
    find: 'overlappingSync: false,',
    replace: 'overlappingSync: false, noSync: true,',
    tests: ['test/anomalies/durability.test.ts'],
  },
  {
    name: 'a snapshot is the state that the thread saw last',
    file: 'src/partition/lmdb-reads.ts',
    find: 'rows.resetReadTxn();',
    replace: '',
    tests: ['src/partition/lmdb.test.ts', '-t', 'sees what a second thread committed before'],
  },
  {
    name: 'a refusal is answered before the write that it read is on disk',
    file: 'src/partition/transact.ts',
    find: 'if (run.refusal && !run.view.readHeld)',
    replace: 'if (run.refusal)',
    tests: ['src/partition/transact.test.ts', 'src/partition/memory.test.ts'],
  },
  {
    name: 'a lease that ran out between decision and commit still counts',
    file: 'src/partition/verify.ts',
    find: 'if (commit.before !== undefined && now >= commit.before)',
    replace: 'if (commit.before !== undefined && now < 0n)',
    tests: ['src/partition/memory.test.ts'],
  },
  {
    name: 'a commit that conflicts adds to its counters',
    file: 'src/partition/memory.ts',
    find: "if (verdict !== 'holds') return 'conflict';",
    replace: `if (verdict !== 'holds') {
        for (const { stamp, writes } of data.bodies)
          for (const each of writes) if (each.kind === 'add') write(each.key, after(each, stamp));
        return 'conflict';
      }`,
    tests: ['src/partition/memory.test.ts'],
  },
  {
    name: 'an add with a late stamp is a conflict',
    file: 'src/partition/verify.ts',
    find: '        continue;',
    replace: '',
    tests: ['src/partition/memory.test.ts'],
  },
];
