/** Optimistic concurrency: a blob is written only if it is as it was read. */
import type { BlockBlobClient, ContainerClient } from '@azure/storage-blob';
import type { Story } from './story.ts';

export async function updateBlobByETag(container: ContainerClient, story: Story): Promise<void> {
  story.chapter('A blob and its ETag (optimistic concurrency)');
  const blob = container.getBlockBlobClient('page.txt');
  const { etag } = await story.step('A client creates a blob, "Hello", and keeps the ETag of the answer', () =>
    write(blob, 'Hello'),
  );
  await story.step('A third party overwrites the blob, unconditionally', () => write(blob, 'Hello from another'));
  await story.refused('The client writes with If-Match and its ETag', 412, 'ConditionNotMet', () =>
    write(blob, 'Hello World', etag),
  );
  await story.step('It reads the blob again, with the new ETag, adds its words and writes with that ETag', () =>
    changeBlob(blob, (text) => `${text}, and World`),
  );
  story.fact('The blob has the words of both', await read(blob), 'Hello from another, and World');
  await story.refused(
    'A client creates the blob only if it is absent (If-None-Match: *)',
    409,
    'BlobAlreadyExists',
    () => blob.upload('', 0, { conditions: { ifNoneMatch: '*' } }),
  );
  const writers = 5;
  await story.step(`${writers} clients add a line each, at the same time, and retry whenever they meet a 412`, () =>
    Promise.all(Array.from({ length: writers }, () => changeBlob(blob, (text) => `${text}\nline`))),
  );
  story.fact('Lines in the blob', (await read(blob)).split('\n').length - 1, writers);
}

/** Read, change, write with the ETag that was read; if another client has written in between, again. */
async function changeBlob(blob: BlockBlobClient, change: (text: string) => string): Promise<void> {
  for (;;) {
    const answer = await blob.download();
    const text = await textOf(answer.readableStreamBody!);
    try {
      await write(blob, change(text), answer.etag);
      return;
    } catch (error) {
      if ((error as { statusCode?: number }).statusCode !== 412) throw error;
    }
  }
}

function write(blob: BlockBlobClient, text: string, ifMatch?: string) {
  return blob.upload(text, Buffer.byteLength(text), ifMatch === undefined ? {} : { conditions: { ifMatch } });
}

const read = async (blob: BlockBlobClient) => (await blob.downloadToBuffer()).toString();

async function textOf(stream: NodeJS.ReadableStream): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of stream) parts.push(Buffer.from(part));
  return Buffer.concat(parts).toString();
}
