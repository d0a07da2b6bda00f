/** Loaded into each measured server (`node --import`): answers with the resources that its process has used, so that src needs no code for it. */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { isMainThread } from 'node:worker_threads';

// A shorter one would cost more CPU than some of the rows.
const RESOLUTION_MILLISECONDS = 2;

// Threads of the server load it too.
if (isMainThread && process.send) {
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MILLISECONDS });
  delay.enable();
  process.on('message', () => {
    // The time between two ticks of a timer is recorded: the delay is what exceeds its period.
    const late = (nanoseconds) => Math.max(0, nanoseconds / 1e6 - RESOLUTION_MILLISECONDS);
    const { user, system } = process.cpuUsage();
    process.send({
      cpuMilliseconds: (user + system) / 1_000,
      loopP99: late(delay.percentile(99)),
      loopMax: delay.count === 0 ? 0 : late(delay.max),
    });
    delay.reset();
  });
  // A server that ends does not wait for its observer, but does not outlive it either.
  process.channel.unref();
  process.once('disconnect', () => process.exit());
}
