import { describe, expect, it } from 'vitest';
import { type LogLine, logInto } from '../../../test/support/raw-client.ts';
import { createRefusalLog } from './refusal-log.ts';

function refusals() {
  const lines: LogLine[] = [];
  const time = { milliseconds: 0 };
  const { refused } = createRefusalLog(logInto(lines), () => time.milliseconds);
  return { lines, time, refused };
}

describe('The log of refused requests', () => {
  it('has one line per source and second, with the number of unlogged requests', () => {
    const { lines, time, refused } = refusals();
    for (let at = 0; at < 100; at++) refused('10.0.0.1', { code: 'AuthenticationFailed' });
    refused('10.0.0.2', { code: 'AuthenticationFailed' });
    time.milliseconds = 999;
    refused('10.0.0.1', { code: 'AuthenticationFailed' });
    expect(lines.map(({ fields }) => fields.from)).toEqual(['10.0.0.1', '10.0.0.2']);
    time.milliseconds = 1_000;
    refused('10.0.0.1', { code: 'InvalidAuthenticationInfo' });
    expect(lines[2]).toEqual({
      level: 'warn',
      message: 'refused',
      fields: { code: 'InvalidAuthenticationInfo', from: '10.0.0.1', unlogged: 100 },
    });
    time.milliseconds = 3_000;
    refused('10.0.0.1', {});
    expect(lines[3]!.fields).not.toHaveProperty('unlogged');
  });

  it('counts an IPv6 /64 network as one source, and IPv4-mapped addresses as IPv4', () => {
    const { lines, refused } = refusals();
    for (const address of ['2001:db8:1:2::1', '2001:db8:1:2:ffff::9', '2001:db8:1:3::1', '::1', '::ffff:10.0.0.1']) {
      refused(address, {});
    }
    refused('10.0.0.1', {});
    refused(undefined, {});
    expect(lines.map(({ fields }) => fields.from)).toEqual([
      '2001:db8:1:2::/64',
      '2001:db8:1:3::/64',
      '0:0:0:0::/64',
      '10.0.0.1',
      'unknown',
    ]);
  });

  it('keeps a bounded number of sources and lines per second', () => {
    const { lines, time, refused } = refusals();
    for (let at = 0; at < 5_000; at++) refused(`10.0.${at >> 8}.${at & 255}`, {});
    expect(lines).toHaveLength(1_001);
    expect(lines.at(-1)!.fields.from).toBe('others');
    time.milliseconds = 1_500;
    refused('10.9.9.9', {});
    expect(lines.at(-1)!.fields.from).toBe('10.9.9.9');
  });
});
