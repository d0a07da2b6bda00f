/** Links in the documentation lead somewhere: to a file that is there, and to a heading in it. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { describe, expect, it } from 'vitest';
import { root } from '../support/repository-copy.ts';

const pages = [
  ...readdirSync(root).filter((file) => file.endsWith('.md')),
  ...readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.md'))
    .map((file) => join('docs', file)),
];

describe('The documentation', () => {
  it.each(pages)('leads somewhere from %s', (page) => {
    expect(linksOf(page).filter((link) => !leadsSomewhere(page, link))).toEqual([]);
  });

  it('is listed in the guide: every page of it', () => {
    const listed = linksOf(join('docs', 'guide', 'README.md')).sort();
    const there = readdirSync(join(root, 'docs', 'guide')).filter((file) => file !== 'README.md');
    expect(listed).toEqual(there.sort());
  });

  it('is in the package if a page of the package links to it', () => {
    const inPackage = (file: string) => /^(docs|README\.md$|CHANGELOG\.md$|LICENSE$)/.test(file);
    const outside = pages
      .filter((page) => page.startsWith(`docs${sep}guide`))
      .flatMap((page) => linksOf(page).map((link) => fileOf(page, link)))
      .filter((file) => !inPackage(relative(root, file)));
    expect(outside).toEqual([]);
  });
});

describe('The judgement on a link', () => {
  const judged: [link: string, leads: boolean][] = [
    ['docs/operations.md', true],
    ['docs/operation.md', false],
    ['docs/guide/running.md#check', true],
    ['docs/guide/running.md#checks', false],
    ['#quick-start', true],
    ['#slow-start', false],
    ['docs/adr', true],
  ];
  it.each(judged)('%s in the README: %s', (link, leads) => {
    expect(leadsSomewhere('README.md', link)).toBe(leads);
  });
});

/** Without those that leave the repository. */
function linksOf(page: string): string[] {
  const text = textOf(page);
  return [...text.matchAll(/\]\(([^()\s]+)\)/g)].map(([, link]) => link ?? '').filter((link) => !/^[a-z]+:/.test(link));
}

function leadsSomewhere(page: string, link: string): boolean {
  const file = fileOf(page, link);
  if (!existsSync(file)) return false;
  const heading = link.split('#')[1];
  return heading === undefined || headingsOf(relative(root, file)).includes(heading);
}

function fileOf(page: string, link: string): string {
  const [path] = link.split('#');
  return path ? resolve(root, dirname(page), path) : join(root, page);
}

/** As GitHub names them. */
function headingsOf(page: string): string[] {
  return [...textOf(page).matchAll(/^#+ (.*)$/gm)].map(([, title = '']) =>
    title
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );
}

/** Code is not text: it may hold brackets and numbers signs. */
function textOf(page: string): string {
  return readFileSync(join(root, page), 'utf8')
    .replaceAll('\r\n', '\n')
    .replace(/^```[\s\S]*?^```$/gm, '');
}
