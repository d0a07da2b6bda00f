#!/usr/bin/env node
import { azurite } from './emulator.ts';
import { main } from './program.ts';

await main(azurite);
