/** The folder of an Azurite: its databases, and the files in which it keeps bytes. Nothing is ever written to it. */
import { existsSync, realpathSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { SentContent } from '../../services/common/upload.ts';
import { StartError } from '../config.ts';
import { fileContent } from '../file-content.ts';
import { findFolderUser } from './folder-users.ts';
import { type FoundDocument, readLokiFile } from './loki-file.ts';

export type DatabaseName = 'blob' | 'queue' | 'table';

const DATABASES = ['blob', 'queue', 'table'] as const;
const EXTENT_FOLDERS = { blob: '__blobstorage__', queue: '__queuestorage__' } as const;
type ExtentsName = keyof typeof EXTENT_FOLDERS;

/** Azurite writes its changes at the latest after this time. */
const AUTOSAVE_MILLISECONDS = 6_000;

/** Bytes in an extent, as documents name them. */
export interface Persistency {
  readonly id: string;
  readonly offset: number;
  readonly count: number;
}

export class AzuriteFolder {
  readonly #folder: string;
  /** The files of extents by their ids. */
  readonly #extents = new Map<string, string>();
  /** Sizes and times of the databases when they were first looked at. */
  readonly #state: string;

  private constructor(folder: string) {
    this.#folder = folder;
    this.#state = this.#currentState();
  }

  /** Throws a StartError if there is no data of Azurite, or if an Azurite is seen to run on it. */
  static async open(folder: string): Promise<AzuriteFolder> {
    if (!DATABASES.some((name) => existsSync(databaseFile(folder, name))))
      throw new StartError(
        `There is no data of Azurite in ${folder}: it has no file ${basename(databaseFile(folder, 'blob'))}.`,
      );
    const user = findFolderUser(realpathSync(folder));
    if (user !== undefined)
      throw new StartError(
        `Process ${user} uses ${folder}. Stop Azurite, which writes its last changes then, and import again.`,
      );
    const opened = new AzuriteFolder(folder);
    for (const name of ['blob', 'queue'] as const) await opened.#readExtents(name);
    return opened;
  }

  /** Of the databases that there are. */
  size(): number {
    return DATABASES.reduce((sum, name) => sum + this.#sizeOf(databaseFile(this.#folder, name)), 0);
  }

  /** None if there is no such database. */
  async *documents(name: DatabaseName): AsyncGenerator<FoundDocument> {
    const file = databaseFile(this.#folder, name);
    if (existsSync(file)) yield* readLokiFile(file);
  }

  /** Fails if the bytes are missing. */
  async content(name: ExtentsName, { id, offset, count }: Persistency): Promise<SentContent> {
    const file = this.#extents.get(id) ?? join(this.#folder, EXTENT_FOLDERS[name], basename(id));
    const size = statSync(file, { throwIfNoEntry: false })?.size;
    if (size === undefined) throw new MissingBytes(`the file ${EXTENT_FOLDERS[name]}/${basename(file)} is missing`);
    if (offset + count > size) throw new MissingBytes(`the file ${EXTENT_FOLDERS[name]}/${basename(file)} is cut off`);
    return fileContent(file, offset, count);
  }

  /** Waits until an Azurite that still runs would have written, and throws a StartError if it has. */
  async checkNotWritten(): Promise<void> {
    const changed = Math.max(...this.#databaseFiles().map((file) => statSync(file).mtimeMs));
    const age = Date.now() - changed;
    if (age >= 0 && age < AUTOSAVE_MILLISECONDS) await sleep(AUTOSAVE_MILLISECONDS - age);
    this.checkUnchanged();
  }

  checkUnchanged(): void {
    if (this.#currentState() === this.#state) return;
    throw new StartError(
      `Azurite has just written to ${this.#folder}: stop it, and import again into an empty folder.`,
    );
  }

  async #readExtents(name: ExtentsName): Promise<void> {
    const file = databaseFile(this.#folder, `${name}_extent`);
    if (!existsSync(file)) return;
    for await (const { parse } of readLokiFile(file)) {
      const { id, path } = parse();
      if (typeof id === 'string' && typeof path === 'string')
        this.#extents.set(id, join(this.#folder, EXTENT_FOLDERS[name], basename(path)));
    }
  }

  #databaseFiles(): string[] {
    return DATABASES.map((name) => databaseFile(this.#folder, name)).filter((file) => existsSync(file));
  }

  #currentState(): string {
    return this.#databaseFiles()
      .map((file) => `${file} ${statSync(file).size} ${statSync(file).mtimeMs}`)
      .join('\n');
  }

  #sizeOf(file: string): number {
    return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
  }
}

/** Bytes that a document names and that the folder does not have. */
export class MissingBytes extends Error {
  override readonly name = 'MissingBytes';
}

function databaseFile(folder: string, name: DatabaseName | `${ExtentsName}_extent`): string {
  return join(folder, `__azurite_db_${name}__.json`);
}
