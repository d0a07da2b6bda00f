/** node health.mjs [port]: ends with 0 when the server in this container answers that it is ready, over HTTP or HTTPS. */
import { request as overHttp } from 'node:http';
import { request as overHttps } from 'node:https';

const port = process.argv[2] ?? 10_000;
process.exitCode = (await isReady(overHttp)) || (await isReady(overHttps)) ? 0 : 1;

function isReady(request) {
  return new Promise((resolve) => {
    // Only whether it answers is asked here: the certificate is the clients' affair.
    const options = { host: '127.0.0.1', port, path: '/health/ready', timeout: 2000, rejectUnauthorized: false };
    request(options, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    })
      .on('timeout', function () {
        this.destroy();
      })
      .on('error', () => resolve(false))
      .end();
  });
}
