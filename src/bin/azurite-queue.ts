#!/usr/bin/env node
import { azuriteOf } from '../cli/azurite-compat.ts';
import { main } from '../cli/run.ts';

await main(azuriteOf('queue'), import.meta.url);
