#!/usr/bin/env node
/** Azurite's command azurite-blob: the Blob service alone. */
import { azuriteFor } from '../cli/azurite-compat.ts';
import { main } from '../cli/run.ts';

await main(azuriteFor('blob'), import.meta.url);
