import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { openDataDirectory } from './data-directory.ts';

function folderOfFormat(format: number): string {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-format-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, 'holdfast.json'), `${JSON.stringify({ format, lead: '70' })}\n`);
  return folder;
}

it.each([2, 3, 4, 5, 6, 7, 8, 9, 10])(
  'A folder of format %i is opened, and older versions refuse it from then on',
  (format) => {
    const folder = folderOfFormat(format);
    const { lead, release } = openDataDirectory(folder, () => {});
    release();
    expect(lead).toBe(70n);
    expect(JSON.parse(readFileSync(join(folder, 'holdfast.json'), 'utf8'))).toEqual({ format: 10, lead: '70' });
  },
);

it.each([
  [1, 'an older'],
  [11, 'a newer'],
])('A folder of format %i is refused, and stays as it is', (format, age) => {
  const folder = folderOfFormat(format);
  expect(() => openDataDirectory(folder, () => {})).toThrow(
    `was written by ${age} Holdfast (format ${format}, this one knows 10)`,
  );
  expect(JSON.parse(readFileSync(join(folder, 'holdfast.json'), 'utf8'))).toEqual({ format, lead: '70' });
});

it('A new folder beside or with data of Azurite has a warning that names the way out, until it has data', () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-azurite-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const warningsAt = (location: string) => {
    const { warnings, release } = openDataDirectory(location, () => {});
    release();
    return warnings.filter((warning) => warning.includes('Azurite'));
  };
  expect(warningsAt(join(folder, 'before'))).toEqual([]);
  writeFileSync(join(folder, '__azurite_db_queue__.json'), '{}');
  const warning = expect.stringContaining(`holdfast import --from-azurite ${folder} brings it over.`);
  expect(warningsAt(join(folder, 'holdfast-data'))).toEqual([warning]);
  expect(warningsAt(folder)).toEqual([warning]);
  expect(warningsAt(folder)).toEqual([]);
  expect(warningsAt(join(folder, 'other'))).toEqual([]);
});
