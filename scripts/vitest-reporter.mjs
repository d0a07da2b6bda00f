/** Writes the outcome of every test, and the duration of every file, to the report that `npm test` asks for. */
import { writeFileSync } from 'node:fs';

export default class SummaryReporter {
  onTestRunEnd(modules, unhandledErrors) {
    const file = process.env.HOLDFAST_TEST_REPORT;
    if (!file) return;
    const results = { passed: 0, failed: [], skipped: [], files: [] };
    for (const module of modules) {
      results.files.push({ file: module.relativeModuleId, milliseconds: totalDuration(module.diagnostic()) });
      for (const test of module.children.allTests()) {
        const { state, note } = test.result();
        const name = `${module.relativeModuleId} > ${test.fullName}`;
        if (state === 'passed') results.passed++;
        else if (state === 'skipped') results.skipped.push({ test: name, reason: note ?? test.options.mode });
        else results.failed.push(name);
      }
      for (const suite of [module, ...module.children.allSuites()]) {
        const name = suite === module ? module.relativeModuleId : `${module.relativeModuleId} > ${suite.fullName}`;
        for (const error of suite.errors()) results.failed.push(`${name}: ${error.message}`);
      }
    }
    for (const error of unhandledErrors) results.failed.push(`outside of any test: ${error.message}`);
    writeFileSync(file, JSON.stringify(results));
  }
}

/** Loading counts, too: a file with few tests and many imports is slow as well. */
function totalDuration({ collectDuration, duration }) {
  return collectDuration + duration;
}
