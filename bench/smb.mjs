/** npm run bench -- --smb [--quick]: SMB beside Samba, through smbclient, in turns; and where the CPU time of Holdfast goes. */
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { noSamba, startSamba } from '../test/support/samba-server.mjs';
import { startHoldfastSmb } from '../test/support/smb-target.mjs';

const MIB = 2 ** 20;
const CLOCK_TICKS_PER_SECOND = 100;
const MODULES = 15;

/**
 * @param {{ quick: boolean, newFolder: () => string, say: (text: string) => void }} bench
 * @param {string} file of the results
 */
export async function runSmbBench(bench, file) {
  if (noSamba) throw new Error(noSamba);
  const sizes = bench.quick
    ? { mebibytes: 64, files: 200, listed: 2_000 }
    : { mebibytes: 256, files: 1_000, listed: 10_000 };
  const client = prepareClient(bench.newFolder(), sizes);
  const profile = join(bench.newFolder(), 'holdfast.cpuprofile');
  process.env.HOLDFAST_PROFILE = profile;
  // Module by module, so that the profile can name them.
  const imports = [fileURLToPath(new URL('smb-profiler.mjs', import.meta.url))];
  const targets = await Promise.all([startHoldfastSmb({ location: bench.newFolder(), imports }), startSamba()]);
  delete process.env.HOLDFAST_PROFILE;
  /** @type {Map<string, Record<string, { seconds: number[], cpu: number[] }>>} */
  const rows = new Map();
  try {
    for (let round = 0; round < (bench.quick ? 2 : 3); round++) {
      for (const { title, prepare, run } of stepsOf(client, sizes)) {
        const order = round % 2 === 0 ? targets : targets.toReversed();
        for (const target of order) {
          if (round === 0) await prepare?.(target);
          const { seconds, cpu } = await timed(target, () => run(target));
          const row = rows.get(title) ?? {};
          rows.set(title, row);
          row[target.name] ??= { seconds: [], cpu: [] };
          row[target.name].seconds.push(seconds);
          row[target.name].cpu.push(cpu);
        }
        bench.say(`${title}, round ${round + 1}`);
      }
    }
  } finally {
    await Promise.all(targets.map((target) => target.stop()));
  }
  const text = `${tableOf(rows)}\n\n${profileOf(profile)}\n`;
  writeFileSync(file, `# SMB beside Samba\n\n${introduction(sizes)}\n\n${text}`);
  console.log(text);
}

function prepareClient(folder, { mebibytes, files }) {
  writeFileSync(join(folder, 'large'), randomBytes(mebibytes * MIB));
  const small = join(folder, 'small');
  mkdirSync(small);
  for (let number = 0; number < files; number++) writeFileSync(join(small, `f${number}`), randomBytes(4_096));
  mkdirSync(join(folder, 'back'));
  return folder;
}

/** Of one round. What a step makes the next ones use or remove. */
function stepsOf(folder, { mebibytes, files, listed }) {
  const protections = [
    ['plain', 'off'],
    ['signed', 'sign'],
    ['encrypted', 'encrypt'],
  ];
  const large = protections.flatMap(([word, protection]) => [
    { title: `put of ${mebibytes} MiB, ${word}`, run: (target) => smbclient(target, folder, 'put large', protection) },
    {
      title: `get of ${mebibytes} MiB, ${word}`,
      run: (target) => smbclient(target, folder, 'get large back/large', protection),
    },
  ]);
  const inSmall = (commands) => `prompt; cd small; ${commands}`;
  return [
    ...large,
    {
      title: `put of ${files} files of 4 KiB`,
      run: (target) => smbclient(target, join(folder, 'small'), `mkdir small; ${inSmall('mput f*')}`),
    },
    {
      title: `get of ${files} files of 4 KiB`,
      run: (target) => smbclient(target, join(folder, 'back'), inSmall('mget f*')),
    },
    {
      title: `deletion of ${files} files`,
      run: (target) => smbclient(target, folder, `${inSmall('del f*')}; cd ..; rmdir small`),
    },
    {
      title: `list of ${listed} files`,
      prepare: (target) => createMany(target, folder, listed),
      run: (target) => smbclient(target, folder, 'ls many/*'),
    },
  ];
}

function createMany(target, folder, count) {
  writeFileSync(join(folder, 'empty'), '');
  const puts = Array.from({ length: count }, (_, number) => `put empty many/e${number}`);
  return smbclient(target, folder, undefined, 'off', ['mkdir many', ...puts].join('\n'));
}

async function timed(target, run) {
  const [cpuBefore, began] = [cpuSeconds(target.pid), performance.now()];
  await run();
  const seconds = (performance.now() - began) / 1_000;
  return { seconds, cpu: cpuSeconds(target.pid) - cpuBefore };
}

async function smbclient({ port, share, user, password }, cwd, commands, protection = 'off', input) {
  const words = [
    `//127.0.0.1/${share}`,
    '-p',
    String(port),
    '-U',
    `${user}%${password}`,
    `--client-protection=${protection}`,
  ];
  if (commands !== undefined) words.push('-c', commands);
  const child = spawn('smbclient', words, { cwd, stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'ignore'] });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text) => {
    output += text;
  });
  child.stdin?.end(input);
  const [code] = await once(child, 'close');
  if (code !== 0 || /NT_STATUS_(?!NO_MORE_FILES)/.test(output)) {
    throw new Error(`smbclient ${commands}: ${code} ${output.slice(-300)}`);
  }
}

/** Of the process and of its children, those that have ended, too: Samba has one for each connection. */
function cpuSeconds(pid) {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /, '')
      .split(' ');
    const own = fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) / CLOCK_TICKS_PER_SECOND;
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean);
    return children.reduce((sum, child) => sum + cpuSeconds(child), own);
  } catch (error) {
    // A child that has ended since its parent was read.
    if (error.code === 'ENOENT' || error.code === 'ESRCH') return 0;
    throw error;
  }
}

const median = (numbers) => numbers.toSorted((one, other) => one - other)[numbers.length >> 1];

function tableOf(rows) {
  const lines = [...rows].map(([title, { Holdfast: ours, Samba: theirs }]) => {
    const [mine, other] = [median(ours.seconds), median(theirs.seconds)];
    const cells = [
      mine.toFixed(2),
      other.toFixed(2),
      `${(other / mine).toFixed(2)} x`,
      median(ours.cpu).toFixed(2),
      median(theirs.cpu).toFixed(2),
    ];
    return `| ${title} | ${cells.join(' | ')} |`;
  });
  return `| | Holdfast, s | Samba, s | speed | CPU of Holdfast, s | CPU of Samba, s |\n|---|---|---|---|---|---|\n${lines.join('\n')}`;
}

function introduction({ files }) {
  return `Medians of the rounds, which alternate between the servers; the time is that of an smbclient from its start to its end. Holdfast has every write on the disk before it answers; Samba writes to the page cache of ext4.
The ${files} files are small ones: the time is that of round trips. Speed: Samba's time divided by Holdfast's.`;
}

/** Self time by module; packages by their name. */
function profileOf(file) {
  const { nodes, samples, timeDeltas } = JSON.parse(readFileSync(file, 'utf8'));
  const moduleById = new Map(nodes.map(({ id, callFrame }) => [id, moduleOf(callFrame)]));
  const times = new Map();
  samples.forEach((id, index) => {
    const name = moduleById.get(id);
    times.set(name, (times.get(name) ?? 0) + timeDeltas[index]);
  });
  times.delete('(idle)');
  const total = [...times.values()].reduce((sum, time) => sum + time, 0);
  const most = [...times].sort(([, one], [, other]) => other - one).slice(0, MODULES);
  const lines = most.map(([name, time]) => `| ${name} | ${((100 * time) / total).toFixed(1)} % |`);
  return `Where the time of Holdfast's main thread goes, by module:\n\n| module | self time |\n|---|---|\n${lines.join('\n')}`;
}

function moduleOf({ functionName, url }) {
  if (url === '') return functionName === '(idle)' || functionName.startsWith('(') ? functionName : 'native';
  const inPackage = /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url)?.[1];
  return inPackage ?? url.replace(/^.*\/build\//, '').replace(/\.js$/, '.ts');
}
