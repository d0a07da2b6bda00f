/** Azurite, which the bench, the import's test and the tests of clients run. Installed in bench/, never in the project. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { npm } from './npm.mjs';
import { root } from './prepare.mjs';

const folder = join(root, 'bench');
const packageFile = join(folder, 'package.json');
const installedFile = join(folder, 'node_modules', 'azurite', 'package.json');

export const azuriteMain = join(folder, 'node_modules', 'azurite', 'dist', 'src', 'azurite.js');

/** @returns its version */
export function installAzurite() {
  const wanted = JSON.parse(readFileSync(packageFile, 'utf8')).dependencies.azurite;
  const installed = () => existsSync(installedFile) && JSON.parse(readFileSync(installedFile, 'utf8')).version;
  if (installed() !== wanted || !existsSync(azuriteMain)) {
    console.log(`Installing Azurite ${wanted} in bench/ ...`);
    const { status } = npm(['install', '--no-package-lock', '--no-audit', '--no-fund', '--loglevel=error'], folder);
    if (status !== 0) throw new Error('Azurite could not be installed; is the network there?');
  }
  return installed();
}

/** Before the tests: without Azurite, the test that needs it is skipped. */
export function ensureAzurite() {
  if (!existsSync(packageFile)) return;
  try {
    installAzurite();
  } catch (error) {
    console.log(`skip: ${error.message}`);
  }
}
