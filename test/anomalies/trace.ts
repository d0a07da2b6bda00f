/** Reads what strace wrote: which calls a server made, and whether an answer left before its commit was on disk. */

export interface Call {
  readonly name: string;
  /** Its arguments and result, as strace prints them. */
  text: string;
  /** Lines of the trace, which are in the order of events. */
  readonly entry: number;
  exit: number;
}

/** For `strace -f -yy`, which names the file or the connection of each descriptor. */
export function callsOf(trace: string): Call[] {
  const calls: Call[] = [];
  const unfinished = new Map<string, Call>();
  for (const [at, line] of trace.split('\n').entries()) {
    const [, thread = '', rest = ''] = /^(\d+) +(?:[\d.]+ )?(.*)$/.exec(line) ?? [];
    const resumed = /^<\.\.\. \w+ resumed>(.*)$/.exec(rest);
    const started = /^(\w+)\((.*)$/.exec(rest);
    if (resumed) {
      const call = unfinished.get(thread);
      if (!call) continue;
      unfinished.delete(thread);
      call.text += resumed[1];
      call.exit = at;
    } else if (started) {
      const isUnfinished = rest.endsWith('<unfinished ...>');
      const call = { name: started[1]!, text: started[2]!, entry: at, exit: isUnfinished ? Infinity : at };
      calls.push(call);
      if (isUnfinished) unfinished.set(thread, call);
    }
  }
  return calls;
}

/**
 * Every answer 201 to the Put Blob of a marked blob must come after a write of the marked bytes to the data file, an fdatasync
 * that began after it, and a write through a descriptor that syncs by itself: the page that makes the commit valid.
 */
export function unsafeAnswers(calls: readonly Call[], marks: ReadonlyMap<string, string>): string[] {
  const selfSyncing = new Set(
    calls.flatMap(({ name, text }) =>
      name === 'openat' && /data\.mdb", .*O_DSYNC/.test(text) ? fdIn(text, '= ') : [],
    ),
  );
  const writes = calls.filter(({ name, text }) => /^p?writev?(64)?2?$/.test(name) && /^\d+<[^>]*data\.mdb>/.test(text));
  const dataWrites = writes.filter(({ text }) => !selfSyncing.has(fdIn(text)[0]!));
  const commitWrites = writes.filter(({ text }) => selfSyncing.has(fdIn(text)[0]!));
  const syncs = calls.filter(({ name, text }) => /^f(data)?sync$/.test(name) && /data\.mdb>.* = 0$/.test(text));

  return [...marks].flatMap(([path, mark]) => {
    const request = calls.find(({ name, text }) => name.startsWith('re') && text.includes(`"PUT ${path} HTTP/1.1`));
    const connection = request && /^(\d+<TCP[^>]*>)/.exec(request.text)?.[1];
    if (!connection) return [`${path}: its request is not in the trace`];
    const answer = calls.find(
      ({ entry, text }) => entry > request.exit && text.startsWith(connection) && text.includes('"HTTP/1.1 '),
    );
    if (!answer?.text.includes('"HTTP/1.1 201')) return [`${path}: it was not answered 201`];
    const written = dataWrites.find(({ entry, text }) => entry > request.entry && text.includes(mark));
    if (!written || written.exit >= answer.entry) return [`${path}: answered before its bytes were written`];
    const sync = syncs.find(({ entry }) => entry > written.exit);
    if (!sync || sync.exit >= answer.entry) return [`${path}: answered before its bytes were synced`];
    const commit = commitWrites.find(({ entry }) => entry > written.exit);
    if (!commit || commit.exit >= answer.entry) return [`${path}: answered before its commit was valid on disk`];
    if (commit.entry < sync.exit) return [`${path}: its commit was valid before its bytes were synced`];
    const late = dataWrites.filter(({ entry }) => entry > sync.entry && entry < commit.entry);
    return late.length > 0 ? [`${path}: pages of its commit were written after the sync`] : [];
  });
}

function fdIn(text: string, before = '^'): string[] {
  const found = new RegExp(`${before}(\\d+)<`).exec(text);
  return found ? [found[1]!] : [];
}
