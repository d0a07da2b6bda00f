/**
 * Imports the folder of a stopped Azurite. First everything is read once: damage, an Azurite that still writes, and names that the
 * destination has already are found before anything is written. Then each kind is taken in its order, in batches of bounded size.
 */
import type { Log } from '../../base/log.ts';
import type { AccountDirectory } from '../../services/accounts/accounts.ts';
import { asStorageError } from '../../services/common/errors.ts';
import type { Storage } from '../../services/common/storage.ts';
import { type Config, developmentAccount, StartError } from '../config.ts';
import { openOwnedPartition } from '../open-partition.ts';
import { type OpenedStorage, openStorage } from '../open-storage.ts';
import { AzuriteFolder } from './azurite-folder.ts';
import { findClashes } from './clashes.ts';
import { type ImportedDocument, type ImportKind, type ImportTarget, importKinds } from './import-kinds.ts';
import { DamagedFile } from './loki-file.ts';
import { type ImportProgress, isOf, type Survey, surveyFolder } from './survey.ts';

export interface ImportReport {
  /** By kind; kinds of which there are none are left out. */
  readonly taken: readonly { readonly what: string; readonly count: number }[];
  readonly leftOut: readonly { readonly what: string; readonly count: number }[];
  /** Documents of kinds that are taken, and the reasons. */
  readonly failures: readonly string[];
  /** How many there are: the list is not longer than FAILURES_MAX. */
  readonly failed: number;
  /** Whether nothing is missing that was still in force. */
  readonly complete: boolean;
  /** Accounts that got new keys. */
  readonly newAccounts: readonly string[];
}

const BATCH_DOCUMENTS = 100;
/** Of documents as they are in the file: entities may have a megabyte. */
const BATCH_BYTES = 4 << 20;
const FAILURES_MAX = 50;

/** Throws a StartError. */
export async function importAzurite(
  from: string,
  config: Config,
  log: Log,
  onProgress: (progress: ImportProgress) => void = () => {},
): Promise<ImportReport> {
  try {
    const folder = await AzuriteFolder.open(from);
    const survey = await surveyFolder(folder, onProgress);
    await folder.checkNotWritten();
    const storage = await openStorage(await openOwnedPartition(config, log), config, log);
    try {
      return await new AzuriteImport(folder, survey, storage, onProgress).run();
    } finally {
      await storage.closeStorage();
    }
  } catch (error) {
    throw error instanceof DamagedFile ? new StartError(`${error.message} Nothing was imported.`) : error;
  }
}

class AzuriteImport {
  readonly #folder: AzuriteFolder;
  readonly #survey: Survey;
  readonly #opened: OpenedStorage;
  readonly #onProgress: (progress: ImportProgress) => void;
  readonly #failedOf = new Map<ImportKind, number>();
  readonly #failures: string[] = [];
  readonly #storages = new Map<string, Storage>();
  readonly #lastStates: ImportTarget['lastStates'] = new Map();
  readonly #newAccounts: string[] = [];
  #done = 0;

  constructor(
    folder: AzuriteFolder,
    survey: Survey,
    opened: OpenedStorage,
    onProgress: (progress: ImportProgress) => void,
  ) {
    this.#folder = folder;
    this.#survey = survey;
    this.#opened = opened;
    this.#onProgress = onProgress;
  }

  async run(): Promise<ImportReport> {
    const { parents } = this.#survey;
    for (const account of new Set(parents.map(({ account }) => account))) await this.#openAccount(account);
    const clashes = await findClashes(parents, (account) => this.#storageOf(account));
    if (clashes.length > 0) {
      const more = clashes.length > 5 ? ` and ${clashes.length - 5} more` : '';
      throw new StartError(
        `The destination has these already: ${clashes.slice(0, 5).join(', ')}${more}. Nothing was imported: name another folder by --location, or delete them there.`,
      );
    }
    for (const kind of importKinds) if (kind.take) await this.#takeAll(kind, kind.take);
    this.#folder.checkUnchanged();
    return this.#report();
  }

  /** An account that the destination does not have gets new keys: Azurite's data has none. */
  async #openAccount(name: string): Promise<void> {
    const accounts: AccountDirectory = this.#opened.accounts;
    if (!accounts.find(name)) {
      const isDevelopment = name === developmentAccount.name;
      try {
        await accounts.add(name, isDevelopment ? developmentAccount.keys : undefined);
      } catch (error) {
        throw new StartError(`The account ${name} cannot be made: ${(error as Error).message}`);
      }
      if (!isDevelopment) this.#newAccounts.push(name);
    }
    this.#storages.set(name, this.#opened.storageFor(accounts.find(name)!));
  }

  #storageOf(account: string): Storage {
    const storage = this.#storages.get(account);
    if (!storage) throw new Error(`there is nothing else of the account ${account}`);
    return storage;
  }

  async #takeAll(kind: ImportKind, take: NonNullable<ImportKind['take']>): Promise<void> {
    if (!this.#survey.counts.get(kind)) return;
    const target = {
      folder: this.#folder,
      storage: (account: string) => this.#storageOf(account),
      lastStates: this.#lastStates,
      failed: (name: string, error: unknown) => this.#failed(kind, name, error),
    };
    let batch: ImportedDocument[] = [];
    let bytes = 0;
    let last = 0;
    const takeBatch = async () => {
      await take(batch, target);
      this.#done += batch.length;
      this.#onProgress({ what: kind.what, done: this.#done, total: this.#total() });
      batch = [];
      bytes = 0;
    };
    for await (const { collection, parse, end } of this.#folder.documents(kind.database)) {
      const length = end - last;
      last = end;
      if (!kind.isIn(collection)) continue;
      const found = { collection, document: parse() };
      if (!isOf(kind, found, this.#survey.now)) continue;
      bytes += length;
      if (batch.push(found) >= BATCH_DOCUMENTS || bytes >= BATCH_BYTES) await takeBatch();
    }
    if (batch.length > 0) await takeBatch();
  }

  #total(): number {
    return [...this.#survey.counts].reduce((sum, [kind, count]) => sum + (kind.take ? count : 0), 0);
  }

  /** A store that is full or broken ends the import; anything else concerns this document alone. */
  #failed(kind: ImportKind, name: string, error: unknown): void {
    const known = asStorageError(error);
    if (known && known.status >= 500) throw new StartError(`The import ended at ${name}: ${known.message}`);
    this.#failedOf.set(kind, (this.#failedOf.get(kind) ?? 0) + 1);
    const reason = known ? `${known.code}, ${known.message}` : (error as Error).message;
    if (this.#failures.length < FAILURES_MAX) this.#failures.push(`${kind.what}: ${name}: ${reason}`);
  }

  #report(): ImportReport {
    const counted = importKinds.map((kind) => {
      const failed = this.#failedOf.get(kind) ?? 0;
      return {
        what: kind.what,
        isTaken: kind.take !== undefined,
        isOver: kind.isOver === true,
        count: (this.#survey.counts.get(kind) ?? 0) - failed,
        failed,
      };
    });
    const listed = (isTaken: boolean) =>
      counted.filter((each) => each.isTaken === isTaken && each.count > 0).map(({ what, count }) => ({ what, count }));
    const failed = counted.reduce((sum, each) => sum + each.failed, 0);
    return {
      taken: listed(true),
      leftOut: listed(false),
      failures: this.#failures,
      failed,
      complete: failed === 0 && counted.every(({ isTaken, isOver, count }) => isTaken || isOver || count === 0),
      newAccounts: this.#newAccounts,
    };
  }
}
