/** Client loops of queues, as in blob-loops.mjs. */
import { maker } from './http-client.mjs';

export const MESSAGE = 'x'.repeat(1_024);
const body = `<?xml version="1.0" encoding="utf-8"?><QueueMessage><MessageText>${MESSAGE}</MessageText></QueueMessage>`;

/** All Puts of one queue are one text, and all Gets: each is signed once. A Delete is signed with its receipt. */
function clientOf(queue) {
  const path = `/${queue}/messages`;
  const putting = maker('POST', { body })(path);
  const getting = maker('GET')(path);
  return {
    put: (send) => send(putting, 201),
    /** Answers which message it was; undefined: there was none. */
    async getAndDelete(send) {
      const answer = await send(getting, 200, true);
      const text = answer.body.latin1Slice();
      const id = /<MessageId>([^<]+)/.exec(text)?.[1];
      if (id === undefined) return undefined;
      const popreceipt = /<PopReceipt>([^<]+)/.exec(text)[1];
      await send(maker('DELETE', { query: { popreceipt } })(`${path}/${id}`), 204);
      return id;
    },
  };
}

export const queueLoops = {
  putMessage({ queue }) {
    const { put } = clientOf(queue);
    return () => (timed) => put(timed);
  },

  /** One operation is both; dequeued messages are replaced outside of the measured time, so that the queue keeps its depth. */
  getAndDelete({ queue }) {
    const { put, getAndDelete } = clientOf(queue);
    return () => async (_timed, _note, record, send) => {
      await put(send);
      const started = performance.now();
      const id = await getAndDelete(send);
      if (id === undefined) throw new Error(`no message in ${queue}`);
      record(performance.now() - started);
    };
  },

  /** Puts, gets, deletes, each an operation: there are always as many messages as consumers that ask. */
  consume({ queue, queues }) {
    const taken = new Set();
    return (client) => {
      const { put, getAndDelete } = clientOf(queues ? `${queue}-${client % queues}` : queue);
      return async (timed, note) => {
        await put(timed);
        const id = await getAndDelete(timed);
        if (taken.has(id)) throw new Error(`message ${id} was handed out twice`);
        if (id === undefined) note('empty', 1);
        else taken.add(id);
      };
    };
  },
};
