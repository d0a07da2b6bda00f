/** `holdfast import`: takes over the data of a stopped Azurite, and prints what it took and what it could not. */
import { resolve } from 'node:path';
import { openLog } from '../base/log.ts';
import { describeDataLocation, resolveConfig, StartError } from '../server/config.ts';
import type { ImportReport } from '../server/import/import-azurite.ts';
import type { ImportCommand } from './import-flags.ts';
import { progressBar } from './progress-bar.ts';

/** The exit code of an import after which something is missing; that of an import that was refused, or ended early, is 1. */
const INCOMPLETE = 2;

export async function runImport({ from, to, json }: ImportCommand): Promise<void> {
  const folder = resolve(from);
  const config = resolveConfig(to);
  if (config.location === folder)
    throw new StartError(`The data of Azurite is in ${folder}: name another folder for Holdfast's by --location.`);
  const { importAzurite } = await import('../server/import/import-azurite.ts');
  const bar = progressBar(process.stderr);
  const log = openLog({ level: 'error', format: 'text', file: undefined });
  const report = await importAzurite(folder, config, log, bar.show).finally(bar.clear);
  console.log(json ? JSON.stringify(report) : formatReport(report, folder, describeDataLocation(config)));
  process.exitCode = report.complete ? 0 : INCOMPLETE;
}

function formatReport(report: ImportReport, from: string, to: string): string {
  const { taken, leftOut, failures, failed, newAccounts } = report;
  const width = Math.max(0, ...[...taken, ...leftOut].map(({ what }) => what.length));
  const counts = (list: ImportReport['taken']) =>
    list.map(({ what, count }) => `  ${what.padEnd(width)}  ${count}`).join('\n') || '  nothing';
  const sections = [`Imported from ${from} to ${to}:\n${counts(taken)}`];
  if (leftOut.length > 0) sections.push(`Not imported, since this version cannot:\n${counts(leftOut)}`);
  if (failed > 0)
    sections.push(`Could not be imported (${failed}):\n${failures.map((line) => `  ${line}`).join('\n')}`);
  if (newAccounts.length > 0)
    sections.push(
      `New keys were made for ${newAccounts.join(', ')}: Azurite's data has none. See holdfast account list --show-keys.`,
    );
  sections.push('What Azurite writes to its folder from now on is not imported.');
  return sections.join('\n');
}
