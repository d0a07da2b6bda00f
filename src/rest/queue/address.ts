import { decodePart, type ParsePath } from '../address.ts';

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
