/** Paths and parameters of the Queue service. The services check limits, except those that depend on the API version. */
import { commonErrors, errorFactory } from '../../services/common/errors.ts';
import type { Reader, Request } from '../operation.ts';
import { integerQuery, invalidQuery, reader } from '../params.ts';
import { decodePart, type ParsePath } from '../request.ts';

const fail = errorFactory(commonErrors);

const ANY = { min: -Infinity, max: Infinity };
const TWO_HOURS_SECONDS = 7_200;
const WEEK_SECONDS = 604_800;

export const messageCount = integerQuery('numofmessages', ANY);
export const visibilitySeconds = integerQuery('visibilitytimeout', ANY);
export const dequeueSeconds = beforeVersion(
  '2011-08-18',
  integerQuery('visibilitytimeout', { min: 1, max: TWO_HOURS_SECONDS }),
  visibilitySeconds,
);
export const ttlSeconds = beforeVersion(
  '2017-07-29',
  integerQuery('messagettl', { min: 1, max: WEEK_SECONDS }),
  integerQuery('messagettl', ANY),
);

/** Get Messages hides the messages that it returns: a misspelt `peekonly` must not have that effect. */
export const rejectPeekOnly: Reader<void> = reader(({ query: { peekonly } }) => {
  if (peekonly !== undefined && peekonly.toLowerCase() !== 'false') throw invalidQuery('peekonly', peekonly);
});

/** Clear Messages has no receipt: a request with one is a Delete Message without an id. */
export const rejectPopReceipt: Reader<void> = reader(({ query: { popreceipt } }) => {
  if (popreceipt !== undefined) throw fail('UnsupportedQueryParameter', { QueryParameterName: 'popreceipt' });
});

export function required<Value>(name: string, read: Reader<Value | undefined>): Reader<Value> {
  return reader((request) => {
    const value = read.read(request);
    if (value === undefined) throw fail('MissingRequiredQueryParameter', { QueryParameterName: name });
    return value;
  });
}

/** A request without a version counts as one of the newest. */
export function isVersionBefore({ version }: Request, since: string): boolean {
  return version !== '' && version < since;
}

function beforeVersion<Value>(since: string, older: Reader<Value>, newer: Reader<Value>): Reader<Value> {
  return reader((request) => (isVersionBefore(request, since) ? older : newer).read(request));
}

/** A path of another shape becomes a queue name with a slash, which every operation refuses as invalid. */
export const parseQueuePath: ParsePath = (rest) => {
  const [queue = '', messages = '', message = '', ...more] = rest.slice(1).split('/').map(decodePart);
  if (queue === '' && messages === '') return { container: '', item: '', shape: '/' };
  if (messages === '' && message === '') return { container: queue, item: '', shape: '/{queue}' };
  if (queue === '' || messages !== 'messages' || more.some((part) => part !== '')) {
    return { container: decodePart(rest.slice(1)), item: '', shape: '/{queue}' };
  }
  const shape = message === '' ? '/{queue}/messages' : '/{queue}/messages/{message}';
  return { container: queue, item: message, shape };
};
