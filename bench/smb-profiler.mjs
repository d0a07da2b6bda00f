/** Loaded into a server by `--import`: writes a CPU profile of the process to the file HOLDFAST_PROFILE when the process ends. */
import { writeFileSync } from 'node:fs';
import { Session } from 'node:inspector';

const file = process.env.HOLDFAST_PROFILE;
const SAMPLING_MICROSECONDS = 500;

if (file !== undefined) {
  const session = new Session();
  session.connect();
  session.post('Profiler.enable');
  session.post('Profiler.setSamplingInterval', { interval: SAMPLING_MICROSECONDS });
  session.post('Profiler.start');
  process.on('exit', () =>
    session.post('Profiler.stop', (_, { profile }) => writeFileSync(file, JSON.stringify(profile))),
  );
}
