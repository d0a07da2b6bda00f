/** Sequential model of one message of a queue; it shares no code with the server. */
import type { Steps } from './queue-time.ts';

/** `undefined`: it has not been put yet. */
export type State = undefined | 'gone' | Alive;

export interface Alive {
  /** The newest. None: it was in an answer that was lost. */
  readonly receipt: string | undefined;
  readonly dequeueCount: number;
  readonly text: string;
  /** The step in which it can be seen again lies here. */
  readonly visible: Steps;
  /** In this step it is there no more. */
  readonly expires: number;
}

/** The effect of an operation on this message, or its answer about it. `at` are the steps in which it may have happened. */
export type Deed =
  | {
      readonly kind: 'put';
      readonly at: Steps;
      readonly text: string;
      readonly receipt: string | undefined;
      readonly hidden: number;
      readonly expires: number;
    }
  | { readonly kind: 'take'; readonly at: Steps; readonly hidden: number; readonly told?: Told }
  | { readonly kind: 'see'; readonly at: Steps; readonly told: Told }
  /** Nothing can be seen in the whole queue. */
  | { readonly kind: 'see nothing'; readonly at: Steps }
  | {
      readonly kind: 'update';
      readonly at: Steps;
      readonly receipt: string;
      readonly hidden: number;
      readonly text: string | undefined;
      readonly next: string | undefined;
    }
  | { readonly kind: 'delete'; readonly at: Steps; readonly receipt: string }
  /** Refused: the receipt is not the newest. */
  | { readonly kind: 'miss'; readonly at: Steps; readonly receipt: string }
  /** Refused: it would hide past its end. */
  | { readonly kind: 'exceed'; readonly at: Steps; readonly receipt: string; readonly hidden: number }
  | { readonly kind: 'clear' }
  | { readonly kind: 'settled' };

interface Told {
  readonly receipt?: string | undefined;
  readonly dequeueCount: number;
  readonly text: string;
}

/** The next state, the same object if nothing changes; or 'wrong' if the operation is impossible. */
export function after(state: State, deed: Deed): State | 'wrong' {
  if (deed.kind === 'settled') return state;
  if (deed.kind === 'put') return state === undefined ? born(deed) : 'wrong';
  if (deed.kind === 'clear') return state && 'gone';
  if (state === undefined || state === 'gone') return isRefusal(deed) ? state : 'wrong';
  const isHeld = 'receipt' in deed && state.receipt === deed.receipt;
  /** The last step in which it can have happened, the message being there. */
  const last = Math.min(deed.at.to, state.expires - 1);
  switch (deed.kind) {
    case 'take':
      if (!canBeSeen(state, deed.at, last) || !isAsTold(state, deed.told, 1)) return 'wrong';
      return {
        ...state,
        receipt: deed.told?.receipt,
        dequeueCount: state.dequeueCount + 1,
        visible: later({ from: Math.max(deed.at.from, state.visible.from), to: last }, deed.hidden),
      };
    case 'see':
      if (!canBeSeen(state, deed.at, last) || !isAsTold(state, deed.told, 0)) return 'wrong';
      return state.visible.to <= last ? state : { ...state, visible: { ...state.visible, to: last } };
    case 'see nothing': {
      const from = deed.at.from + 1;
      if (deed.at.to >= state.expires || state.visible.from >= from) return state;
      return state.visible.to < from ? 'wrong' : { ...state, visible: { ...state.visible, from } };
    }
    case 'miss':
      return isHeld && deed.at.to < state.expires ? 'wrong' : state;
    case 'exceed':
      return isHeld && last >= deed.at.from && last + deed.hidden > state.expires ? state : 'wrong';
    case 'delete':
      return isHeld && last >= deed.at.from ? 'gone' : 'wrong';
    case 'update': {
      const to = Math.min(last, state.expires - deed.hidden);
      if (!isHeld || to < deed.at.from) return 'wrong';
      const visible = later({ from: deed.at.from, to }, deed.hidden);
      return { ...state, receipt: deed.next, text: deed.text ?? state.text, visible };
    }
  }
}

/** A refusal, or an answer that there is nothing. */
export const isRefusal = ({ kind }: Deed): boolean => kind === 'see nothing' || kind === 'miss';

function born({ at, text, receipt, hidden, expires }: Extract<Deed, { kind: 'put' }>): State {
  return { receipt, dequeueCount: 0, text, visible: later(at, hidden), expires };
}

const ALWAYS: Steps = { from: -1, to: -1 };
const later = ({ from, to }: Steps, hidden: number): Steps =>
  hidden === 0 ? ALWAYS : { from: from + hidden, to: to + hidden };

const canBeSeen = ({ visible }: Alive, at: Steps, last: number): boolean => last >= at.from && visible.from <= last;

function isAsTold({ dequeueCount, text }: Alive, told: Told | undefined, taken: number): boolean {
  return !told || (told.dequeueCount === dequeueCount + taken && told.text === text);
}

export function describeState(state: State): string {
  if (state === undefined) return 'not yet put';
  if (state === 'gone') return state;
  const { receipt, dequeueCount, text, visible, expires } = state;
  const when =
    visible === ALWAYS ? 'at once' : `in step ${visible.from}${visible.to > visible.from ? ' or later' : ''}`;
  return `${text}, taken ${dequeueCount} times, to be seen ${when}, there before step ${expires}, by the receipt ${receipt}`;
}
