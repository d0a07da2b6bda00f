/** A history: requests of clients to one or several servers, with the times of call and return, and the answers. */

import type { InPlaceAnswer, InPlaceRequest, InPlaceType } from './in-place-model.ts';

export type Request =
  | InPlaceRequest
  | {
      readonly kind: 'put';
      /** No other put of the history has it. */
      readonly content: string;
      /** The blob begins empty, and changes in place. */
      readonly type?: InPlaceType | undefined;
      /** One that a put or a get has returned. */
      readonly ifMatch?: string | undefined;
      readonly ifNoneMatch?: '*' | undefined;
      readonly leaseId?: string | undefined;
    }
  /** `snapshot` is one that Snapshot Blob has returned. */
  | { readonly kind: 'get'; readonly snapshot?: string | undefined; readonly leaseId?: string | undefined }
  | {
      readonly kind: 'delete';
      readonly ifMatch?: string | undefined;
      readonly leaseId?: string | undefined;
      readonly snapshots?: 'include' | 'only' | undefined;
    }
  | { readonly kind: 'delete snapshot'; readonly snapshot: string }
  | { readonly kind: 'snapshot'; readonly ifMatch?: string | undefined; readonly leaseId?: string | undefined }
  | { readonly kind: 'undelete' }
  | { readonly kind: 'acquire'; readonly leaseId: string; readonly seconds: number }
  | { readonly kind: 'renew' | 'release'; readonly leaseId: string }
  | { readonly kind: 'change'; readonly leaseId: string; readonly newId: string }
  | { readonly kind: 'break' }
  /** The server's time moves past the end of every lease that has one. */
  | { readonly kind: 'advance' };

export type Answer =
  | (InPlaceAnswer & {
      readonly etag?: string | undefined;
      readonly content?: string | undefined;
      readonly lease?: string | undefined;
      readonly snapshot?: string | undefined;
    })
  | { readonly refused: string };

export interface Operation {
  readonly blob: string;
  readonly client: number;
  readonly request: Request;
  /** Milliseconds of one monotonic clock. */
  readonly called: number;
  /** Missing: it may have happened, or happen at any later time, or never. */
  readonly returned?: { readonly at: number; readonly answer: Answer };
}

export const INFINITE = -1;

export function grouped<T>(items: readonly T[], nameOf: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const name = nameOf(item);
    const group = groups.get(name);
    if (group) group.push(item);
    else groups.set(name, [item]);
  }
  return groups;
}

/** One line. */
export function describeOperation({ client, request, called, returned }: Operation): string {
  const { kind, ...inputs } = request;
  const words = Object.entries(inputs).filter(([, value]) => value !== undefined);
  const asked = [kind, ...words.map(([name, value]) => `${name} ${value}`)].join(' ');
  const when = `${called.toFixed(2)} .. ${returned ? returned.at.toFixed(2) : 'no answer'}`;
  return `${when}  client ${client}: ${asked}${returned ? ` -> ${describeAnswer(returned.answer)}` : ''}`;
}

function describeAnswer(answer: Answer): string {
  if ('refused' in answer) return answer.refused;
  const words = Object.entries(answer).filter(([, value]) => value !== undefined);
  return words.length === 0 ? 'done' : words.map(([name, value]) => `${name} ${value}`).join(', ');
}
