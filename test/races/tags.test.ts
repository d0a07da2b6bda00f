import { describe, expect, it } from 'vitest';
import { onEveryDisk } from '../support/test-server.ts';

const WRITERS = 16;
const CHANGES = 12;

const tagsXml = (value: string) => `<Tags><TagSet><Tag><Key>step</Key><Value>${value}</Value></Tag></TagSet></Tags>`;
const stepOf = (number: number) => String(number).padStart(4, '0');

describe('A search by tags', () => {
  onEveryDisk((running) => {
    it('is one state, while 16 writers change tags', async () => {
      const { containerName } = await running.newContainer();
      const pathOf = (writer: number, blob: string) => `/${containerName}/${blob}-${writer}`;
      const setStep = async (path: string, number: number) => {
        const answer = await running.request('PUT', `${path}?comp=tags`, { body: tagsXml(stepOf(number)) });
        expect(answer.status).toBe(204);
      };
      const writers = Array.from({ length: WRITERS }, (_, writer) => writer);
      for (const writer of writers) {
        for (const blob of ['first', 'second']) {
          const headers = { 'x-ms-blob-type': 'BlockBlob', 'x-ms-tags': `step=${stepOf(0)}` };
          await running.request('PUT', pathOf(writer, blob), { headers, body: 'x' });
        }
      }
      let writing = WRITERS;
      const write = async (writer: number) => {
        for (let number = 1; number <= CHANGES; number++) {
          for (const blob of ['first', 'second']) await setStep(pathOf(writer, blob), number);
        }
        writing--;
      };
      const where = encodeURIComponent(`"step" >= ''`);
      const read = async () => {
        let reads = 0;
        for (; writing > 0 || reads === 0; reads++) {
          const { text } = await running.request(
            'GET',
            `/${containerName}?restype=container&comp=blobs&where=${where}`,
          );
          const found = [...text.matchAll(/<Name>(\w+-\d+)<\/Name>.*?<Value>(\d+)<\/Value>/g)];
          const steps = new Map(found.map(([, name, step]) => [name!, Number(step)]));
          // Each blob once: a tag that changes is never under both values, nor under none.
          expect(found).toHaveLength(2 * WRITERS);
          expect(steps.size).toBe(2 * WRITERS);
          for (const writer of writers) {
            const ahead = steps.get(`first-${writer}`)! - steps.get(`second-${writer}`)!;
            expect([0, 1]).toContain(ahead);
          }
        }
        return reads;
      };
      await Promise.all([...writers.map(write), read(), read(), read()]);
    });
  });
});
