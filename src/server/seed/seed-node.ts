/** A value of a seed, with the place where it stands: every fault names that place. */
import { StartError } from '../config.ts';

export type SeedPath = readonly (string | number)[];

/** Says where a value stands, in words that a colon can follow: a file with a line, or the option. */
export type Locate = (path: SeedPath) => string;

/** Text that an HTTP header can carry: metadata and properties of blobs are sent in headers. */
const HEADER_TEXT = /^[\x20-\x7e]*$/;

export class SeedNode {
  readonly value: unknown;
  readonly path: SeedPath;
  readonly #locate: Locate;

  constructor(value: unknown, locate: Locate, path: SeedPath = []) {
    this.value = value;
    this.path = path;
    this.#locate = locate;
  }

  /** The last part of the path: the name of a container, a queue ... */
  get name(): string {
    return String(this.path.at(-1));
  }

  fault(message: string): StartError {
    const named = this.path.length === 0 ? '' : `${formatPath(this.path)}: `;
    return new StartError(`${this.#locate(this.path)}: ${named}${message}.`);
  }

  /** The fields of a map whose keys are known; an unknown key is a fault. */
  fields<const Known extends string>(known: readonly Known[]): { readonly [Name in Known]?: SeedNode } {
    const fields = this.entries();
    const unknown = fields.find(({ name }) => !(known as readonly string[]).includes(name));
    if (unknown) throw unknown.fault(`there is no such setting here; there are ${known.join(', ')}`);
    return Object.fromEntries(fields.map((field) => [field.name, field])) as { [Name in Known]?: SeedNode };
  }

  /** The members of a map whose keys are names. Nothing after the colon is an empty map. */
  entries(): readonly SeedNode[] {
    if (this.value === null) return [];
    if (!isMap(this.value)) throw this.fault('it is a map, with a colon after each name');
    return Object.entries(this.value).map(([key, value]) => this.#child(key, value));
  }

  items(): readonly SeedNode[] {
    if (this.value === null) return [];
    if (!Array.isArray(this.value)) throw this.fault('it is a list');
    return this.value.map((value, index) => this.#child(index, value));
  }

  text(): string {
    if (typeof this.value === 'string') return this.value;
    throw this.fault('it is a text: put it in quotes');
  }

  headerText(): string {
    const text = this.text();
    if (!HEADER_TEXT.test(text)) throw this.fault('it is sent in an HTTP header, which has printable ASCII only');
    return text;
  }

  whole(): number {
    const number = typeof this.value === 'bigint' ? Number(this.value) : this.value;
    if (typeof number === 'number' && Number.isSafeInteger(number)) return number;
    throw this.fault('it is a whole number');
  }

  choice<const Choice extends string>(choices: readonly Choice[]): Choice {
    const choice = choices.find((each) => each === this.value);
    if (choice === undefined) throw this.fault(`it is ${choices.join(' or ')}`);
    return choice;
  }

  isMap(): boolean {
    return isMap(this.value);
  }

  #child(key: string | number, value: unknown): SeedNode {
    return new SeedNode(value, this.#locate, [...this.path, key]);
  }
}

function isMap(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function formatPath(path: SeedPath): string {
  return path
    .map((part, index) => (typeof part === 'number' ? `[${part + 1}]` : `${index > 0 ? '.' : ''}${part}`))
    .join('');
}
