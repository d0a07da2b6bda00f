/** node health.mjs [ports]: ends with 0 when the server in this container answers on one of them that it is ready, over HTTP or HTTPS. */
import { request as overHttp } from 'node:http';
import { request as overHttps } from 'node:https';

// Of all services, because an image may have been started for one of them.
const ports = process.argv.length > 2 ? process.argv.slice(2) : [10_000, 10_001, 10_002, 10_003];
process.exitCode = 1;
for (const port of ports) {
  if ((await isReady(overHttp, port)) || (await isReady(overHttps, port))) {
    process.exitCode = 0;
    break;
  }
}

function isReady(request, port) {
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
