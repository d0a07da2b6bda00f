/** Failovers, one after another, under three servers that go on all the time. */
import { setTimeout as sleep } from 'node:timers/promises';
import { onTestFinished } from 'vitest';
import { startCluster } from '../support/postgres-cluster.ts';
import { restartableServer, root, startServers, stopServers } from '../support/restartable-servers.ts';
import { run } from '../support/server-process.mjs';
import { holdFiles } from './held-files.ts';
import { FAULTS_MAX, type Load, startLoad } from './load.ts';
import { halt, killNode, type Node, nodeAt, type Standby, startStandby } from './standby.ts';
import { startSwitch, type Target } from './switch.ts';

export interface FailoverOptions {
  readonly rounds: number;
  /** A new folder. */
  readonly extents: string;
  /** Without it acknowledged writes are lost. */
  readonly synchronous?: boolean;
  readonly onRound?: (line: string) => void;
}

export interface FailoverResult {
  readonly faults: readonly string[];
  readonly acknowledged: number;
  readonly outageSeconds: readonly number[];
}

interface Round {
  /** Until the standby is promoted. */
  readonly seconds: number;
  /** Where the address leads meanwhile. A standby does not know the last writes then. */
  readonly meanwhile: 'refused' | 'silent' | 'standby';
  /** Commits that wait for the standby at the end have not been sent to it, or have and are not confirmed. */
  readonly halted: 'walsender' | 'walreceiver';
}

/** Longer than a server asks for the outcome of a commit is the third. */
const ROUNDS: readonly Round[] = [
  { seconds: 2, meanwhile: 'standby', halted: 'walsender' },
  { seconds: 5, meanwhile: 'silent', halted: 'walreceiver' },
  { seconds: 35, meanwhile: 'refused', halted: 'walsender' },
];
/** Before a primary is killed, and after. */
const WRITES = 300;
const HALTED_MILLISECONDS = 300;

export async function failover(options: FailoverOptions): Promise<FailoverResult> {
  const { rounds, extents, synchronous = true, onRound = () => {} } = options;
  const cluster = await startCluster();
  onTestFinished(() => cluster.drop());
  let primary: Node = await nodeAt(cluster.url);
  const address = await startSwitch(primary.port);
  onTestFinished(() => address.close());
  const url = new URL(cluster.url);
  url.port = String(address.port);
  const shared = ['--partition', url.href, '--extents', extents];
  // A connection that a server closed for being idle would look like a lost one.
  const flags = [...shared, '--blobKeepAliveTimeout', '600'];
  const servers = [restartableServer(flags), restartableServer(flags), restartableServer(flags)];
  onTestFinished(() => stopServers(servers));
  await startServers(servers);
  const load = await startLoad(servers.map((server) => server.origin()!));
  onTestFinished(() => load.stop());

  const outageSeconds: number[] = [];
  const faultsOfFiles: string[] = [];
  for (let number = 0; number < rounds; number++) {
    const standby = await startStandby(primary, { synchronous });
    onTestFinished(() => standby.drop());
    await more(load);
    const heldFiles = await holdFiles(servers, number);
    const round = ROUNDS[number % ROUNDS.length]!;
    const before = load.acknowledged();
    load.refusals();
    outageSeconds.push(await failOver(round, { primary, standby, load, lead: address.lead }));
    await more(load);
    faultsOfFiles.push(...(await heldFiles.verify()));
    onRound(
      `round ${number + 1}: ${before} acknowledged, primary killed, standby promoted after ${round.seconds} s ` +
        `(${round.meanwhile}), first write again after ${outageSeconds.at(-1)!.toFixed(1)} s; ${JSON.stringify(load.refusals())}`,
    );
    primary = standby;
  }
  await load.stop();
  const { blobs, unknown, happened } = await load.verify();
  onRound(
    `${blobs} blobs looked at; ${unknown} had a last write that was not acknowledged, ${happened} of those happened`,
  );
  await stopServers(servers);
  const checking = run([process.execPath, `${root}/dist/bin/holdfast.js`, 'check', ...shared]);
  const { code } = await checking.ended;
  const damage = code === 0 ? [] : [`check: ${checking.stdout()}${checking.stderr()}`];
  return { faults: [...load.faults, ...faultsOfFiles, ...damage], acknowledged: load.acknowledged(), outageSeconds };
}

async function more(load: Load): Promise<void> {
  const enough = load.acknowledged() + WRITES;
  while (load.acknowledged() < enough) {
    if (load.faults.length >= FAULTS_MAX) throw new Error(`Nothing goes any more: ${load.faults[0]}`);
    await sleep(20);
  }
}

interface Scene {
  readonly primary: Node;
  readonly standby: Standby;
  readonly load: Load;
  lead(target: Target): void;
}

/** How many seconds no write was acknowledged. */
async function failOver(
  { seconds, meanwhile, halted }: Round,
  { primary, standby, load, lead }: Scene,
): Promise<number> {
  if (meanwhile === 'standby') {
    await standby.pauseReplay();
    await more(load);
  }
  const { goOn } = halt(halted === 'walsender' ? primary : standby, halted);
  await sleep(HALTED_MILLISECONDS);
  if (meanwhile === 'silent') lead('silent');
  killNode(primary);
  const killed = performance.now();
  goOn();
  if (meanwhile !== 'silent') lead(meanwhile === 'standby' ? standby.port : 'refused');
  await sleep(seconds * 1_000);
  await standby.promote();
  const promoted = performance.now();
  lead(standby.port);
  const end = promoted + 60_000;
  while (load.lastAt() < promoted) {
    if (performance.now() > end) throw new Error('No write is acknowledged a minute after the failover.');
    await sleep(10);
  }
  return (load.lastAt() - killed) / 1_000;
}
