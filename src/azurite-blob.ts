#!/usr/bin/env node
import { azuriteBlob } from './emulator.ts';
import { main } from './program.ts';

await main(azuriteBlob);
