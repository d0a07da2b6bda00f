/**
 * node bench/metrics.mjs: what counting a request for /metrics costs, beside the CPU time of the shortest request of the last bench.
 * The build comes first.
 */
import { readFileSync } from 'node:fs';
import { RequestMetrics } from '../build/rest/metrics/request-metrics.js';

const REQUESTS = 2_000_000;
const operations = ['Get Blob', 'Put Blob', 'Get Messages', 'Delete Message', 'Query Entities'];

const nanoseconds = Math.min(...Array.from({ length: 5 }, measure));
const { rows } = JSON.parse(readFileSync(new URL('results/default.json', import.meta.url), 'utf8'));
const getBlob = rows.find(({ title }) => title === 'Get Blob 1 KiB, 64 clients').sides.holdfast;
const requestNanoseconds = getBlob.cpuMillisecondsPerOperation * 1e6;
const percent = (100 * nanoseconds) / requestNanoseconds;
console.log(
  `${nanoseconds.toFixed(0)} ns for a request: ${percent.toFixed(2)} % of the CPU time of a Get Blob of 1 KiB`,
);

function measure() {
  const metrics = new RequestMetrics();
  const began = process.hrtime.bigint();
  for (let i = 0; i < REQUESTS; i++) metrics.observe(operations[i % 5], i % 50 === 0 ? 404 : 200, (i % 1_000) / 10);
  return Number(process.hrtime.bigint() - began) / REQUESTS;
}
