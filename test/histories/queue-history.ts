/** A history of queues: requests of clients, the times of call and return, and the answers. */

/**
 * The servers' time moves in steps so long that everything else is short beside them. Messages hide and live for some steps less a
 * part of one: whether such an instant is past depends on the number of steps alone. See docs/adr/0017-linearizability-checking.md.
 */
export const STEP_SECONDS = 240;
/** In steps; undefined: the message stays visible. */
export const hiddenSeconds = (steps: number): number => (steps === 0 ? 0 : (steps - 0.5) * STEP_SECONDS);
export const lifeSeconds = (steps: number): number => (steps === FOREVER ? -1 : (steps - 0.25) * STEP_SECONDS);
export const FOREVER = Infinity;

export type Request =
  /** No other put or update of the history has its text. */
  | { readonly kind: 'put'; readonly text: string; readonly hidden: number; readonly life: number }
  | { readonly kind: 'get'; readonly count: number; readonly hidden: number }
  | { readonly kind: 'peek'; readonly count: number }
  | { readonly kind: 'update'; readonly hidden: number; readonly text?: string | undefined; readonly held: Held }
  | { readonly kind: 'delete'; readonly held: Held }
  | { readonly kind: 'clear' }
  /** The servers' time moves by a step. */
  | { readonly kind: 'advance' }
  /** Whatever had no answer has happened by now, or never will. */
  | { readonly kind: 'settled' };

export interface Held {
  readonly id: string;
  readonly receipt: string;
}

/** A message as an answer has it. Times are the server's, in whole seconds. */
export interface Told {
  readonly id: string;
  readonly inserted: number;
  readonly expires: number;
  /** Not of one that was looked at only. */
  readonly receipt?: string | undefined;
  readonly nextVisible?: number | undefined;
  /** Not of one that was put. */
  readonly dequeueCount?: number | undefined;
  readonly text?: string | undefined;
}

export type Answer =
  | { readonly refused: string }
  | { readonly messages: readonly Told[] }
  | { readonly receipt: string; readonly nextVisible: number }
  | { readonly done: true };

export interface Operation {
  readonly queue: string;
  readonly client: number;
  readonly request: Request;
  /** Milliseconds of one monotonic clock. */
  readonly called: number;
  /** Missing: it may have happened, or happen at any later time until all is settled, or never. */
  readonly returned?: { readonly at: number; readonly answer: Answer };
}

export const messagesOf = ({ returned }: Operation): readonly Told[] =>
  returned && 'messages' in returned.answer ? returned.answer.messages : [];

export const isRefused = ({ returned }: Operation): boolean => returned !== undefined && 'refused' in returned.answer;

/** The receipts in its answer. */
export function heldAfter(operation: Operation): Held[] {
  const { request, returned } = operation;
  if (request.kind === 'update' && returned && 'receipt' in returned.answer)
    return [{ id: request.held.id, receipt: returned.answer.receipt }];
  return messagesOf(operation).flatMap(({ id, receipt }) => (receipt === undefined ? [] : [{ id, receipt }]));
}

/** One line. */
export function describeOperation({ client, request, called, returned }: Operation): string {
  const { kind, ...inputs } = request;
  const when = `${called.toFixed(2)} .. ${returned ? returned.at.toFixed(2) : 'no answer'}`;
  const told = returned ? ` -> ${describe(returned.answer)}` : '';
  return `${when}  client ${client}: ${kind} ${describe(inputs)}${told}`;
}

const describe = (value: object): string => JSON.stringify(value).replaceAll('"', '').slice(0, 600);
