import { expect, it } from 'vitest';
import { EpisodeLog } from './episode-log.ts';

it('An episode is logged once, however long it lasts, and another one a minute after its end', () => {
  let time = 0;
  let logged = 0;
  const log = new EpisodeLog(() => time);
  const happens = () => log.happened(() => logged++);
  for (; time < 300_000; time += 1_000) happens();
  expect(logged).toBe(1);
  time += 58_000;
  happens();
  expect(logged).toBe(1);
  time += 60_000;
  happens();
  expect(logged).toBe(2);
});
