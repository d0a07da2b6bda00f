/** A program that appends lines to a log, as many do at once: node log-writer.mjs <URL with a SAS> <name> <lines>. Prints the offset of each line. */
import { AppendBlobClient } from '@azure/storage-blob';

const [url = '', name = '', lines = ''] = process.argv.slice(2);
const log = new AppendBlobClient(url);
await log.createIfNotExists();
for (let at = 0; at < Number(lines); at++) {
  const line = `${name} ${at} ${'.'.repeat((at * 37) % 300)}\n`;
  const { blobAppendOffset } = await log.appendBlock(line, line.length);
  console.log(JSON.stringify({ offset: Number(blobAppendOffset), line }));
}
