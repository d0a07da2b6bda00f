/**
 * List Handles and Force Close Handles: the handles on a file or directory, or also on all below it. What is below is found among the opens of
 * the share, so the cost is theirs, and no file is read.
 */
import { nextSlice } from '../../base/time-slices.ts';
import { keyAfter } from '../../partition/keys.ts';
import type { Snapshot } from '../../partition/partition.ts';
import { asStorageError } from '../common/errors.ts';
import type { Storage } from '../common/storage.ts';
import { fail } from './errors.ts';
import { forceCloseHandle } from './handles.ts';
import { checkPath, type FoundTarget, type ReadPathInput, resolveAt } from './namespace.ts';
import {
  decodeHandle,
  decodeOpens,
  type HandleId,
  handleKey,
  handlesOf,
  idFromHandleKey,
  nodeFromOpensKey,
  type OpenHandle,
  opensIn,
  opensKey,
} from './open-rows.ts';
import { findGone } from './opens.ts';
import type { NodeId, Share } from './rows.ts';

const PAGE_MAX = 5_000;
const SCAN_ROWS = 500;
/** Their commits share flushes. */
const CLOSED_AT_ONCE = 100;

export interface HandlesInput extends ReadPathInput {
  /** Also what is below the directory. */
  readonly isRecursive: boolean;
  readonly marker: string | undefined;
}

export interface ListedHandle extends OpenHandle {
  readonly id: HandleId;
  readonly node: NodeId;
}

interface HandlePage {
  readonly handles: readonly ListedHandle[];
  /** Empty: this is the last page. */
  readonly nextMarker: string;
}

export async function listHandles(
  storage: Storage,
  input: HandlesInput & { readonly resultsMax: number | undefined },
): Promise<HandlePage> {
  const resultsMax = Math.min(input.resultsMax ?? PAGE_MAX, PAGE_MAX);
  return (await readPage(storage, input, resultsMax)).page;
}

export interface ForceCloseInput extends HandlesInput {
  /** As sent: the id of a handle, or `*` for all. */
  readonly handleId: string;
}

export interface ClosedHandles {
  readonly closed: number;
  readonly failed: number;
  /** Empty: there are no more. */
  readonly nextMarker: string;
}

/** The process that holds a handle finds it closed when it uses it next. */
export async function forceCloseHandles(storage: Storage, input: ForceCloseInput): Promise<ClosedHandles> {
  const id = parseHandleId(input.handleId);
  const { target, page } = await readPage(storage, input, PAGE_MAX, id);
  if (input.isRecursive && target.node.kind === 'file') throw invalidHeader('x-ms-recursive', 'true');
  const { share: name } = input;
  let closed = 0;
  let failed = 0;
  for (let at = 0; at < page.handles.length; at += CLOSED_AT_ONCE) {
    const some = page.handles.slice(at, at + CLOSED_AT_ONCE);
    const outcomes = await Promise.allSettled(
      some.map(({ node, id: open }) =>
        forceCloseHandle(storage, { share: name, shareId: target.share.id, node, id: open }),
      ),
    );
    for (const outcome of outcomes) {
      if (outcome.status === 'fulfilled') closed += outcome.value ? 1 : 0;
      else if (asStorageError(outcome.reason)) failed++;
      else throw outcome.reason;
    }
  }
  return { closed, failed, nextMarker: page.nextMarker };
}

function parseHandleId(text: string): HandleId | undefined {
  if (text === '*') return undefined;
  if (!/^\d{1,20}$/.test(text)) throw invalidHeader('x-ms-handle-id', text);
  return BigInt(text);
}

const invalidHeader = (name: string, value: string) =>
  fail('InvalidHeaderValue', { HeaderName: name, HeaderValue: value });

/** @param only the handle that is wanted; undefined: all */
async function readPage(
  storage: Storage,
  input: HandlesInput,
  resultsMax: number,
  only?: HandleId,
): Promise<{ readonly target: FoundTarget; readonly page: HandlePage }> {
  const path = checkPath(input);
  const first = input.marker ? parseMarker(input.marker) : undefined;
  return storage.partition.read(async (at) => {
    const target = await resolveAt(at, storage, input.share, path, input.snapshot);
    if (!target.node) throw fail('ResourceNotFound');
    const found = target as FoundTarget;
    const handles: ListedHandle[] = [];
    const done = (nextMarker: string) => ({ target: found, page: { handles, nextMarker } });
    // Through SMB nothing is opened in a snapshot.
    if (target.seenAt !== undefined) return done('');
    for await (const handle of openHandles(at, found, input.isRecursive, first)) {
      if (only !== undefined && handle.id !== only) continue;
      if (handles.length === resultsMax) return done(formatMarker(handle));
      handles.push(handle);
    }
    return done('');
  });
}

/** In the order of nodes and of handles, from `first` on, without those whose owner is gone. */
async function* openHandles(
  at: Snapshot,
  { share, node }: FoundTarget,
  isRecursive: boolean,
  first: Place | undefined,
): AsyncGenerator<ListedHandle> {
  const isGone = new Map<bigint, boolean>();
  for await (const opened of isRecursive ? openNodesBelow(at, share, node.id, first?.node) : [node.id]) {
    const range = handlesOf(share, opened);
    let from = first?.node === opened ? handleKey(share, opened, first.id) : range.from;
    for (let isMore = true; isMore; ) {
      const rows = await at.scan({ from, to: range.to }, { limit: SCAN_ROWS });
      isMore = rows.length === SCAN_ROWS;
      for (const row of rows) {
        const handle = decodeHandle(row);
        const { owner } = handle;
        if (!isGone.has(owner)) isGone.set(owner, (await findGone(at, [owner])).has(owner));
        if (!isGone.get(owner)) yield { ...handle, id: idFromHandleKey(row.key), node: opened };
        from = keyAfter(row.key);
      }
      if (isMore) await nextSlice();
    }
  }
}

/** The directory itself and what is below it, as far as it is open. */
async function* openNodesBelow(
  at: Snapshot,
  share: Share,
  directory: NodeId,
  first: NodeId | undefined,
): AsyncGenerator<NodeId> {
  const { from: start, to } = opensIn(share);
  let from = first === undefined ? start : opensKey(share, first);
  for (let isMore = true; isMore; ) {
    const rows = await at.scan({ from, to }, { limit: SCAN_ROWS });
    isMore = rows.length === SCAN_ROWS;
    for (const row of rows) {
      const node = nodeFromOpensKey(row.key);
      if (node === directory || decodeOpens(row).ancestors.includes(directory)) yield node;
      from = keyAfter(row.key);
    }
    if (isMore) await nextSlice();
  }
}

interface Place {
  readonly node: NodeId;
  readonly id: HandleId;
}

/** Opaque to clients: the handle with which the next page starts. */
const formatMarker = ({ node, id }: Place): string => `${node}!${id}`;

function parseMarker(marker: string): Place {
  const [, node, id] = /^(\d{1,19})!(\d{1,19})$/.exec(marker) ?? [];
  if (node !== undefined && id !== undefined) return { node: BigInt(node), id: BigInt(id) };
  throw fail('InvalidQueryParameterValue', { QueryParameterName: 'marker', QueryParameterValue: marker });
}
