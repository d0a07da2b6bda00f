#!/usr/bin/env node
/** Azurite's command azurite-table: the Table service alone. */
import { azuriteFor } from '../cli/azurite-compat.ts';
import { main } from '../cli/run.ts';

await main(azuriteFor('table'), import.meta.url);
