#!/usr/bin/env node
import { azuriteFor } from '../cli/azurite-compat.ts';
import { main } from '../cli/run.ts';

await main(azuriteFor('blob'), import.meta.url);
