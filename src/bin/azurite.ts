#!/usr/bin/env node
/** Azurite's command azurite, with its flags. */
import { azurite } from '../cli/azurite-compat.ts';
import { main } from '../cli/run.ts';

await main(azurite, import.meta.url);
