/**
 * Counts the work of the thread that loads it, in steps that do not depend on the machine: how often each block of code ran, as
 * V8's precise coverage counts them, plus the elements or characters that built-in functions pass over unseen by it.
 * The work of a regular expression counts as the length of its text: one that backtracks is not found here.
 */
import { Session } from 'node:inspector';

let unseen = 0;

const upToFound = (/** @type {any} */ self, /** @type {any[]} */ words, /** @type {number} */ found) =>
  (found < 0 ? self.length : found + 1) - Math.max(0, Number(words[1] ?? 0));
for (const owner of [String.prototype, Array.prototype, Uint8Array.prototype, Buffer.prototype])
  countUnseen(owner, ['indexOf'], upToFound);
countUnseen(String.prototype, [
  ...['lastIndexOf', 'includes', 'search', 'match', 'replace', 'replaceAll'],
  ...['toLowerCase', 'toUpperCase', 'trim', 'normalize', 'localeCompare', 'padStart', 'padEnd', 'repeat', 'concat'],
]);
// With a limit it does not go to the end.
countUnseen(String.prototype, ['split'], (_, _words, parts) => parts.reduce((sum, { length }) => sum + length + 1, 0));
// Those that are given a function, such as find, are seen by its calls.
countUnseen(Array.prototype, ['lastIndexOf', 'includes', 'join', 'concat', 'slice', 'splice', 'unshift']);
countUnseen(Array.prototype, ['sort', 'reverse', 'flat']);
countUnseen(Uint8Array.prototype, ['includes', 'slice', 'join']);
countUnseen(Buffer.prototype, ['includes', 'equals', 'compare']);
// A checksum clears some bytes of a large memory.
for (const owner of [Array.prototype, Uint8Array.prototype, Buffer.prototype])
  countUnseen(owner, ['fill'], (self, [, from = 0, to = self.length]) => to - from);
// Of a part of the bytes, mostly.
countUnseen(Buffer.prototype, ['toString'], (_, _words, text) => text.length);
countUnseen(Buffer.prototype, ['copy'], (_, _words, copied) => copied);
const ofArgument = (/** @type {any} */ _, /** @type {any[]} */ words) => lengthOf(words[0]);
countUnseen(Uint8Array.prototype, ['set'], ofArgument);
countUnseen(Buffer, ['from', 'concat', 'byteLength'], ofArgument);
countUnseen(globalThis, ['decodeURIComponent', 'encodeURIComponent'], ofArgument);
countUnseen(JSON, ['parse'], ofArgument);
countUnseen(JSON, ['stringify'], (_, _words, text) => lengthOf(text));
countUnseen(Object, ['keys', 'values', 'entries'], (_, _words, found) => lengthOf(found));
// Elements that spreading and destructuring iterate over.
for (const iterable of [[], new Map(), new Set()])
  countUnseen(Object.getPrototypeOf(iterable[Symbol.iterator]()), ['next'], () => 1);

// test calls it, replace and match call it for each piece that they find, and split at each place where one could begin.
const { exec } = RegExp.prototype;
RegExp.prototype.exec = function (text) {
  const from = this.global || this.sticky ? this.lastIndex : 0;
  const found = Reflect.apply(exec, this, [text]);
  unseen += (found ? found.index + found[0].length : this.sticky ? from + 1 : text.length) - from;
  return found;
};

const session = new Session();
session.connect();
session.post('Profiler.enable');
session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });

/** Since it was asked last. */
export function takeSteps() {
  let steps = unseen;
  session.post('Profiler.takePreciseCoverage', (error, { result }) => {
    if (error) throw error;
    for (const { url, functions } of result) {
      if (!isOfServer(url)) continue;
      for (const { ranges } of functions) for (const { count } of ranges) steps += count;
    }
  });
  unseen = 0;
  return steps;
}

/** @param {string} url */
function isOfServer(url) {
  return url.includes('/build/') || url.includes('/node_modules/');
}

/**
 * @param {any} owner @param {readonly (string | symbol)[]} names
 * @param {(self: any, words: any[], result: any) => number} cost
 */
function countUnseen(owner, names, cost = lengthOf) {
  for (const name of names) {
    const original = owner[name];
    owner[name] = function (/** @type {any[]} */ ...words) {
      const result = Reflect.apply(original, this, words);
      unseen += cost(this, words, result);
      return result;
    };
  }
}

/** @param {any} value */
function lengthOf(value) {
  return value?.length ?? 1;
}
