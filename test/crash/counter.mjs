/** Many clients add to one number in a blob, each by If-Match: no acknowledged addition may be missing after a crash. */

const PATH = 'counter/number';

export function newCounter() {
  let acknowledged = 0;
  let unanswered = 0;

  return {
    acknowledged: () => acknowledged,

    /** @param {ReturnType<import('../support/signed-client.mjs').connect>} client */
    async create(client) {
      await client.createContainer('counter');
      await client.putBlob(PATH, Buffer.from('0'));
    },

    /** @param {ReturnType<import('../support/signed-client.mjs').connect>} client */
    async count(client, isOver = () => false) {
      while (!isOver()) {
        let isSent = false;
        try {
          const { body, headers } = await client.getBlob(PATH);
          isSent = true;
          const sum = Buffer.from(String(Number(body.toString()) + 1));
          const { status } = await client.putBlob(PATH, sum, { 'if-match': headers.etag ?? '' });
          if (status === 201) acknowledged++;
          else if (status !== 412) throw new Error(`the counter was answered ${status}`);
        } catch (error) {
          if (!(/** @type {NodeJS.ErrnoException} */ (error).code) && !isOver()) throw error;
          if (isSent) unanswered++;
          return;
        }
      }
    },

    /** @param {ReturnType<import('../support/signed-client.mjs').connect>} client */
    async verify(client) {
      const { body } = await client.getBlob(PATH);
      const found = Number(body.toString());
      const most = acknowledged + unanswered;
      const faults =
        found >= acknowledged && found <= most ? [] : [`the counter is ${found}, not ${acknowledged} to ${most}`];
      acknowledged = found;
      unanswered = 0;
      return faults;
    },

    /** @param {ReturnType<import('../support/signed-client.mjs').connect>} client */
    removeAll: (client) => client.deleteContainer('counter'),
  };
}
