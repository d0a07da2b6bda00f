/** Parses the output of strace: the system calls of a server, and whether an answer left before its commit was on disk. */

export interface Call {
  readonly name: string;
  /** Its arguments and result, as strace prints them. */
  text: string;
  /** Lines of the trace, which are in the order of events. */
  readonly entry: number;
  exit: number;
}

const UNFINISHED = '<unfinished ...>';

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
      // strace pads the column of the result.
      call.text += resumed[1]!.replace(/\) +=/, ') =');
      call.exit = at;
    } else if (started) {
      const isUnfinished = rest.endsWith(UNFINISHED);
      const said = started[2]!.replace(/\) +=/, ') =');
      const text = isUnfinished ? said.slice(0, -UNFINISHED.length).trimEnd() : said;
      const call = { name: started[1]!, text, entry: at, exit: isUnfinished ? Infinity : at };
      calls.push(call);
      if (isUnfinished) unfinished.set(thread, call);
    }
  }
  return calls;
}

/**
 * Every answer 201 to the Put Blob of a marked blob must come after a write of the marked bytes to the log and an fdatasync that
 * began after it. LMDB's file gets them later: a checkpoint never holds a commit that the log may lose.
 */
export function unsafeAnswers(calls: readonly Call[], marks: ReadonlyMap<string, string>): string[] {
  const { logWrites, dataWrites, syncs } = rowsIn(calls);
  return [...marks].flatMap(([path, mark]) => {
    const exchange = exchangeIn(calls, path);
    if (typeof exchange === 'string') return [exchange];
    const { request, answer } = exchange;
    const has = ({ entry, text }: Call) => entry > request.entry && text.includes(mark);
    const written = logWrites.find(has);
    if (!written || written.exit >= answer.entry) return [`${path}: answered before its bytes were written`];
    const sync = syncs.find(({ entry }) => entry > written.exit);
    if (!sync || sync.exit >= answer.entry) return [`${path}: answered before its bytes were synced`];
    const checkpointed = dataWrites.find(has);
    return checkpointed && checkpointed.entry < sync.exit ? [`${path}: checkpointed before it was synced`] : [];
  });
}

export interface Upload {
  /** Path and query, as they were sent. */
  readonly target: string;
  /** Chunks that must be in extents when the request is answered, each with a marker as its first bytes. */
  readonly chunks: readonly { readonly mark: string; readonly length: number }[];
}

/**
 * Every answer 201 must come after a commit: a write to the log and its fdatasync. And that must
 * begin after all bytes of the chunks were written to their extents, an fdatasync of each that began after its last write,
 * and, since the extent was made, an fsync of the folder.
 */
export function unsafeUploads(calls: readonly Call[], uploads: readonly Upload[]): string[] {
  const { logWrites, syncs } = rowsIn(calls);
  const extents = extentsIn(calls);
  return uploads.flatMap(({ target, chunks }) => {
    const exchange = exchangeIn(calls, target);
    if (typeof exchange === 'string') return [exchange];
    const { request, answer } = exchange;
    const durable = chunks.map(({ mark, length }) => extents.durableAt(mark, length));
    const missing = durable.find((at) => typeof at === 'string');
    if (missing) return [`${target}: ${missing}`];
    const bytesAt = Math.max(request.exit, ...(durable as number[]));
    if (bytesAt >= answer.entry) return [`${target}: answered before its bytes were durable`];
    const commit = logWrites.find(({ entry }) => entry > bytesAt);
    const sync = commit && syncs.find(({ entry }) => entry > commit.exit);
    return sync && sync.exit < answer.entry ? [] : [`${target}: no commit lies between its bytes and its answer`];
  });
}

function exchangeIn(calls: readonly Call[], target: string): { request: Call; answer: Call } | string {
  const request = calls.find(({ name, text }) => name.startsWith('re') && text.includes(`"PUT ${target} HTTP/1.1`));
  const connection = request && /^(\d+<TCP[^>]*>)/.exec(request.text)?.[1];
  if (!connection) return `${target}: its request is not in the trace`;
  const answer = calls.find(
    ({ entry, text }) => entry > request.exit && text.startsWith(connection) && text.includes('"HTTP/1.1 '),
  );
  return answer?.text.includes('"HTTP/1.1 201') ? { request, answer } : `${target}: it was not answered 201`;
}

/** Calls on the files of rows. */
function rowsIn(calls: readonly Call[]) {
  const writesTo = (file: RegExp) => calls.filter((call) => isWrite(call) && file.test(call.text));
  return {
    logWrites: writesTo(/^\d+<[^>]*[/]wal-\d>/),
    dataWrites: writesTo(/^\d+<[^>]*data\.mdb>/),
    syncs: calls.filter((call) => isSync(call, /[/]wal-\d>/)),
  };
}

const HEADER_BYTES = 64;
const CHECKED_BYTES = 64 << 10;

/** Calls on the files of extents. */
function extentsIn(calls: readonly Call[]) {
  const inExtents = calls.filter(({ text }) => /[/]extents[/]\d+-\d+["> ]/.test(text));
  const writes = inExtents.filter(isWrite).map((call) => {
    const [, file = ''] = /[/]extents[/]([\d-]+)>/.exec(call.text) ?? [];
    const [, position, bytes] = /, (\d+)\) += (\d+)$/.exec(call.text) ?? [];
    return { ...call, file, position: Number(position), bytes: Number(bytes) };
  });
  const folderSyncs = calls.filter((call) => isSync(call, /[/]extents>/));

  return {
    /** When the chunk and the name of its extent were there for good, or why they never were. */
    durableAt(mark: string, length: number): number | string {
      const first = writes.find(({ text }) => text.includes(`"${mark}`));
      if (!first) return 'its bytes were never written';
      const slotBytes = HEADER_BYTES + length + 4 * Math.ceil(length / CHECKED_BYTES);
      const own = writes.filter(
        ({ file, position }) =>
          file === first.file && position >= first.position && position < first.position + slotBytes,
      );
      if (own.reduce((sum, { bytes }) => sum + bytes, 0) !== slotBytes) return 'not all of its bytes were written';
      const writtenAt = Math.max(...own.map(({ exit }) => exit));
      const isOfFile = new RegExp(`[/]extents[/]${first.file}>`);
      const sync = calls.find((call) => isSync(call, isOfFile) && call.entry > writtenAt);
      if (!sync) return 'its bytes were never synced';
      const made = inExtents.find(
        ({ name, text }) => name === 'openat' && text.includes(`/${first.file}"`) && text.includes('O_EXCL'),
      );
      const named = made && folderSyncs.find(({ entry }) => entry > made.exit);
      return named ? Math.max(sync.exit, named.exit) : 'the name of its extent was never synced';
    },
  };
}

/**
 * Names that a power cut after the call numbered `until` may have taken away, or left with a part of their bytes: each that was made
 * in the folder needs a sync of its folder afterwards, and one that replaced another or was linked a sync of the draft before.
 */
export function unsafeNames(calls: readonly Call[], folder: string, until: number): string[] {
  const done = calls.filter(({ exit }) => exit < until);
  const isSyncOf = (path: string) => (call: Call) =>
    /^f(data)?sync$/.test(call.name) && call.text.includes(`<${path}>`);
  return done.flatMap((call) => {
    const [path = '', to] = [...call.text.matchAll(/"([^"]*)"/g)].map(([, each = '']) => each);
    const made = to ?? path;
    if (!made.startsWith(folder) || !call.text.endsWith('= 0')) return [];
    if (!/^(mkdir|rename|link)(at2?)?$/.test(call.name)) return [];
    const parent = made.slice(0, made.lastIndexOf('/'));
    const isNamed = done.some((other) => other.entry > call.exit && isSyncOf(parent)(other));
    const isWhole = to === undefined || done.some((other) => other.exit < call.entry && isSyncOf(path)(other));
    const name = made.slice(folder.length + 1);
    return [
      ...(isNamed ? [] : [`${name}: its name is not durable`]),
      ...(isWhole ? [] : [`${name}: its bytes are not durable`]),
    ];
  });
}

export function isWrite({ name }: Call): boolean {
  return /^p?writev?(64)?2?$/.test(name);
}

export function isSync({ name, text }: Call, file: RegExp): boolean {
  return /^f(data)?sync$/.test(name) && file.test(text) && text.endsWith('= 0');
}
