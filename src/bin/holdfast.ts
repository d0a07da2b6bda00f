#!/usr/bin/env node
/** The command holdfast. */
import { holdfast } from '../cli/azurite-compat.ts';
import { main } from '../cli/run.ts';

await main(holdfast, import.meta.url);
