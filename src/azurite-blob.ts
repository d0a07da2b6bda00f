#!/usr/bin/env node
import { azuriteOf } from './emulator.ts';
import { main } from './program.ts';

await main(azuriteOf('blob'));
