#!/usr/bin/env node
import { azuriteOf } from '../cli/azurite-compat.ts';
import { main } from '../cli/run.ts';

await main(azuriteOf('table'), import.meta.url);
