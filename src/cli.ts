#!/usr/bin/env node
import { holdfast } from './emulator.ts';
import { main } from './program.ts';

await main(holdfast);
