/** A program that stops its server and does not wait for it: `exits.mjs <folder> <milliseconds until process.exit>`. */
import { start } from 'holdfast';

const [location, milliseconds] = process.argv.slice(2);
const server = await start({ location, blobPort: 0, queuePort: 0, tablePort: 0, log: { level: 'silent' } });
void server.stop();
setTimeout(() => process.exit(3), Number(milliseconds));
