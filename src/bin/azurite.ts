#!/usr/bin/env node
import { azurite } from '../cli/azurite-compat.ts';
import { main } from '../cli/run.ts';

await main(azurite, import.meta.url);
