import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { formatLine, openLog } from './log.ts';

const folder = mkdtempSync(join(tmpdir(), 'holdfast-log-'));
afterAll(() => rmSync(folder, { recursive: true }));

describe('the log', () => {
  it('is lines of JSON, with a time that sorts', () => {
    const file = join(folder, 'json', 'a.log');
    const log = openLog({ level: 'debug', format: 'json', file });
    log.debug({ status: 200 }, 'request');
    expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({
      level: 'debug',
      msg: 'request',
      status: 200,
      time: expect.stringMatching(/^\d{4}-.*Z$/),
    });
  });

  it('is lines for people otherwise, and leaves out what is below its level', () => {
    const file = join(folder, 'a.log');
    const log = openLog({ level: 'warn', format: 'text', file });
    log.info('quiet');
    log.warn({ ms: 1200.5, url: '/a?b=c', text: 'two words' }, 'slow request');
    expect(readFileSync(file, 'utf8')).toMatch(/^\S+Z WARN {2}slow request ms=1200.5 url=\/a\?b=c text="two words"\n$/);
  });

  it('puts a stack below its line', () => {
    const line = formatLine(
      '{"level":"error","time":"t","err":{"message":"m","stack":"Error: m\\n    at x"},"msg":"bug"}\n',
    );
    expect(line).toBe('t ERROR bug\nError: m\n    at x\n');
  });
});
