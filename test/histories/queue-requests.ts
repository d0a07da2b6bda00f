/** Requests of a queue's history on the wire, and their answers. */
import { type Answer, hiddenSeconds, lifeSeconds, type Request, STEP_SECONDS, type Told } from './queue-history.ts';
import { advance, attempt, type Received, type Sent, type Wire } from './requests.ts';

export type Outcome = { readonly answer: Answer } | { readonly unknown: string } | 'never sent';
export type QueueWire = Pick<Wire, 'connection' | 'patience'>;

export function perform(queue: string, request: Request, wire: QueueWire): Promise<Outcome> {
  return attempt(wire, sendingOf(`/${queue}/messages`, request), (answer) => outcomeOf(request, answer));
}

/** @param origin any of a server that uses the store */
export async function moveTime(origin: string, patience: number): Promise<Outcome> {
  const outcome = await advance({ origin, patience }, STEP_SECONDS);
  return typeof outcome === 'object' && 'answer' in outcome ? { answer: { done: true } } : outcome;
}

function sendingOf(path: string, request: Request): Sent {
  switch (request.kind) {
    case 'put': {
      const timing = `visibilitytimeout=${hiddenSeconds(request.hidden)}&messagettl=${lifeSeconds(request.life)}`;
      return ['POST', `${path}?${timing}`, { body: bodyOf(request.text) }];
    }
    case 'get': {
      const timing = `visibilitytimeout=${hiddenSeconds(request.hidden)}`;
      return ['GET', `${path}?numofmessages=${request.count}&${timing}`];
    }
    case 'peek':
      return ['GET', `${path}?numofmessages=${request.count}&peekonly=true`];
    case 'update': {
      const timing = `visibilitytimeout=${hiddenSeconds(request.hidden)}`;
      const body = request.text === undefined ? {} : { body: bodyOf(request.text) };
      return ['PUT', `${path}/${request.held.id}?popreceipt=${receiptOf(request)}&${timing}`, body];
    }
    case 'delete':
      return ['DELETE', `${path}/${request.held.id}?popreceipt=${receiptOf(request)}`];
    case 'clear':
      return ['DELETE', path];
    default:
      throw new Error(`${request.kind} is no request to a queue.`);
  }
}

const receiptOf = ({ held }: Extract<Request, { readonly held: unknown }>): string => encodeURIComponent(held.receipt);
const bodyOf = (text: string): Buffer => Buffer.from(`<QueueMessage><MessageText>${text}</MessageText></QueueMessage>`);

function outcomeOf(request: Request, { status, code, headers, body }: Received): Outcome {
  // Also of a 503 it is not taken for granted that nothing happened.
  if (status >= 500) return { unknown: `${status} ${code ?? ''}` };
  if (status >= 400) return { answer: { refused: code ?? String(status) } };
  if (request.kind === 'delete' || request.kind === 'clear') return { answer: { done: true } };
  if (request.kind === 'update') {
    const nextVisible = secondsOf(String(headers['x-ms-time-next-visible']));
    return { answer: { receipt: String(headers['x-ms-popreceipt']), nextVisible } };
  }
  const messages = body.toString().split('<QueueMessage>').slice(1).map(messageIn);
  return { answer: { messages } };
}

function messageIn(xml: string): Told {
  const of = (name: string): string | undefined => new RegExp(`<${name}>([^<]*)</${name}>`).exec(xml)?.[1];
  const secondsIn = (name: string): number | undefined => {
    const text = of(name);
    return text === undefined ? undefined : secondsOf(text);
  };
  const count = of('DequeueCount');
  return {
    id: of('MessageId')!,
    inserted: secondsIn('InsertionTime')!,
    expires: secondsIn('ExpirationTime')!,
    receipt: of('PopReceipt'),
    nextVisible: secondsIn('TimeNextVisible'),
    dequeueCount: count === undefined ? undefined : Number(count),
    text: of('MessageText'),
  };
}

const secondsOf = (text: string): number => Date.parse(text) / 1_000;
