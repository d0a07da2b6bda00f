import { describe, expect, it } from 'vitest';
import { parseQueuePath } from './params.ts';

describe('A path of the Queue service', () => {
  it.each([
    ['', '/', '', ''],
    ['/', '/', '', ''],
    ['/orders', '/{queue}', 'orders', ''],
    ['/orders/', '/{queue}', 'orders', ''],
    ['/orders/messages', '/{queue}/messages', 'orders', ''],
    ['/orders/messages/', '/{queue}/messages', 'orders', ''],
    ['/orders/messages/some%2Did', '/{queue}/messages/{message}', 'orders', 'some-id'],
    ['/messages/messages/messages', '/{queue}/messages/{message}', 'messages', 'messages'],
    ['/orders%2Fmessages', '/{queue}', 'orders/messages', ''],
  ])('%s leads to %s', (path, shape, container, item) => {
    expect(parseQueuePath(path)).toEqual({ shape, container, item });
  });

  it.each(['/orders/Messages', '/orders/other', '/orders/messages/id/more', '//messages', '/orders//id'])(
    '%s leads to a name that no queue has',
    (path) => {
      const { shape, container } = parseQueuePath(path);
      expect(shape).toBe('/{queue}');
      expect(container).toContain('/');
    },
  );

  it('is refused where its encoding is broken', () => {
    expect(() => parseQueuePath('/%zz')).toThrow(expect.objectContaining({ code: 'InvalidUri' }));
  });
});
