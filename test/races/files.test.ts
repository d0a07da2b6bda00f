/** Directories and files under races: of two operations that exclude each other one is first, and nothing is left without a way to it. */
import { check } from 'holdfast';
import { describe, expect, it } from 'vitest';
import { onEveryDisk } from '../support/test-server.ts';

const codeOf = ({ status, headers }: { status: number; headers: Record<string, unknown> }) =>
  status < 300 ? status : headers['x-ms-error-code'];

onEveryDisk((running) => {
  const request = (method: string, path: string, headers: Record<string, string> = {}) =>
    running.request(method, path, { of: 'file', headers });
  const makeDirectory = (path: string) => request('PUT', `/${path}?restype=directory`);
  const makeFile = (path: string) => request('PUT', `/${path}`, { 'x-ms-type': 'file', 'x-ms-content-length': '10' });
  const list = async (path: string) => {
    const { text } = await request('GET', `/${path}?restype=directory&comp=list`);
    return [...text.matchAll(/<Name>(.*?)<\/Name>/g)].map(([, name]) => name!);
  };
  const renameDirectory = (share: string, from: string, to: string) =>
    request('PUT', `/${share}/${to}?restype=directory&comp=rename`, {
      'x-ms-file-rename-source': `${running.files.url}/${share}/${from}`,
    });
  const expectSound = async () => expect((await check(running.where)).findings).toEqual([]);

  describe('Deleting a directory', () => {
    it('while files are made in it leaves no file without a directory', async () => {
      const share = (await running.newShare()).name;
      for (let round = 0; round < 12; round++) {
        const directory = `${share}/d${round}`;
        await makeDirectory(directory);
        const answers = await Promise.all([
          ...[0, 1, 2].map((i) => makeFile(`${directory}/f${i}`)),
          request('DELETE', `/${directory}?restype=directory`),
          ...[3, 4].map((i) => makeFile(`${directory}/f${i}`)),
        ]);
        const codes = answers.map(codeOf);
        const deleted = codes[3];
        if (deleted === 202) for (const code of codes) expect([202, 'ParentNotFound']).toContain(code);
        else expect(codes).toEqual([201, 201, 201, 'DirectoryNotEmpty', 201, 201]);
        expect(await list(directory)).toHaveLength(deleted === 202 ? 0 : 5);
      }
      await expectSound();
    });
  });

  describe('Renaming a directory', () => {
    it('while files are made below it keeps every file that was acknowledged, in its place', async () => {
      const share = (await running.newShare()).name;
      for (let round = 0; round < 8; round++) {
        const [from, to] = [`from${round}`, `to${round}`];
        await makeDirectory(`${share}/${from}`);
        await makeDirectory(`${share}/${from}/in`);
        const make = async (name: string) => {
          const code = codeOf(await makeFile(`${share}/${from}/in/${name}`));
          expect([201, 'ParentNotFound']).toContain(code);
          return code === 201 ? [name] : [];
        };
        const before = ['a', 'b', 'c', 'd'].map(make);
        const renamed = renameDirectory(share, from, to);
        const after = ['e', 'f', 'g', 'h'].map(make);
        expect((await renamed).status).toBe(200);
        const acknowledged = (await Promise.all([...before, ...after])).flat();
        expect(await list(`${share}/${to}/in`)).toEqual(acknowledged.sort());
      }
      await expectSound();
    });

    it('into each other is done once', async () => {
      const share = (await running.newShare()).name;
      for (let round = 0; round < 8; round++) {
        const [a, b] = [`a${round}`, `b${round}`];
        for (const path of [a, `${a}/x`, b, `${b}/x`]) await makeDirectory(`${share}/${path}`);
        const answers = await Promise.all([
          renameDirectory(share, a, `${b}/x/in`),
          renameDirectory(share, b, `${a}/x/in`),
        ]);
        const codes = answers.map(codeOf);
        expect(codes.map(String).sort()).toEqual(['200', 'ParentNotFound']);
      }
      expect(await list(share)).toHaveLength(8);
      await expectSound();
    });

    it('of many to one name is done once', async () => {
      const share = (await running.newShare()).name;
      for (let round = 0; round < 4; round++) {
        const sources = [0, 1, 2, 3].map((i) => `s${round}-${i}`);
        for (const path of sources) await makeDirectory(`${share}/${path}`);
        const answers = await Promise.all(sources.map((path) => renameDirectory(share, path, `one${round}`)));
        const codes = answers.map((answer) => String(codeOf(answer))).sort();
        expect(codes).toEqual(['200', ...Array(3).fill('ResourceAlreadyExists')]);
      }
      await expectSound();
    });
  });
});
