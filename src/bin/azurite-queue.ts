#!/usr/bin/env node
/** Azurite's command azurite-queue: the Queue service alone. */
import { azuriteFor } from '../cli/azurite-compat.ts';
import { main } from '../cli/run.ts';

await main(azuriteFor('queue'), import.meta.url);
