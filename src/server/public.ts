/**
 * The public types. This file imports nothing: its declarations and those of index.ts are the one .d.ts file of the package
 * (scripts/bundle-types.mjs).
 */

/** An error that the user can correct: the message is one line that says what is wrong and what to do. */
export class StartError extends Error {
  override readonly name = 'StartError';
}

/** A service cannot listen on its address; `cause` has the reason. */
export class CannotListen extends Error {
  override readonly name = 'CannotListen';
  readonly endpoint: ListenEndpoint;
  /** EADDRINUSE and the like. */
  readonly code: string | undefined;

  constructor(endpoint: ListenEndpoint, cause: { readonly message: string; readonly code?: string | undefined }) {
    const { service, host, port } = endpoint;
    super(`The ${service} service cannot listen on ${host}:${port}: ${cause.message}`, { cause });
    this.endpoint = endpoint;
    this.code = cause.code;
  }
}

export interface Account {
  readonly name: string;
  /** One or two, in base64. */
  readonly keys: readonly string[];
}

export type LogLevel = 'silent' | 'error' | 'warn' | 'info' | 'debug';
export type LogFormat = 'text' | 'json';

export interface LogOptions {
  readonly level?: LogLevel;
  readonly format?: LogFormat;
  /** Where the log goes instead of the console. */
  readonly file?: string;
  /** A line on the console for each request: by default at level info, unless the log goes to a file. */
  readonly requests?: boolean;
}

/** Paths of files. */
export interface CertificateFiles {
  /** In PEM, with the certificates above it; or a PFX. */
  readonly cert: string;
  /** In PEM. */
  readonly key?: string;
  /** Of the key or the PFX. */
  readonly password?: string;
}

type ServedService = 'blob' | 'queue' | 'table' | 'file';

type ServiceOptions = {
  /** The address that the service listens on: 127.0.0.1. */
  readonly [Name in `${ServedService}Host`]?: string;
} & {
  /** 10000 to 10003; 0 picks a free port, also for the services and SMB whose port is not given. */
  readonly [Name in `${ServedService}Port`]?: number;
} & {
  /** Seconds that an idle connection stays open: 5. */
  readonly [Name in `${ServedService}KeepAliveSeconds`]?: number;
};

/** Options of `start()`; everything has a default. */
export interface StartOptions extends ServiceOptions {
  /** Which services to serve: all of them. */
  readonly services?: readonly ServedService[];
  /** Serve the shares of the File service by SMB, too: true, where the File service is served. */
  readonly smb?: boolean;
  /** The address that SMB listens on: 127.0.0.1. */
  readonly smbHost?: string;
  /** 10445; 0 picks a free port. */
  readonly smbPort?: number;
  /** Refuse SMB clients that do not encrypt: false. */
  readonly smbRequireEncryption?: boolean;
  /** Keep all data in memory, and lose it at the end. */
  readonly inMemory?: boolean;
  /** The folder of the data: ./holdfast-data. */
  readonly location?: string;
  /** postgres://...: rows that any number of processes share. Then `location` only keeps certificates. */
  readonly partition?: string;
  /** With `partition`: the folder of bytes that the processes share. */
  readonly extents?: string;
  /** Instead of devstoreaccount1 and those of earlier starts. */
  readonly accounts?: readonly Account[];
  /** Let tests move the server's time and empty the server. */
  readonly testClock?: boolean;
  /** Serve HTTPS, with the given certificate or with a self-signed one that the server makes and keeps. */
  readonly https?: 'auto' | CertificateFiles;
  /** Accept bearer tokens by their claims, without verifying their signature. Only with https. */
  readonly oauth?: 'basic';
  /** Ignore headers and parameters of missing features, instead of refusing them. */
  readonly looseMode?: boolean;
  /** Read the account from the first segment of the path, whatever the host name is. */
  readonly pathStyleOnly?: boolean;
  /** Origins whose pages may do everything, whatever the service properties say; '*' is all of them. */
  readonly cors?: readonly string[];
  /** Names of this server by which web pages may call over plain HTTP, besides localhost and the like. */
  readonly allowedHosts?: readonly string[];
  /** In memory: bytes of blobs of more than 16 KiB, and of blocks, beyond which uploads are refused: half of the memory. */
  readonly memoryBytesMax?: number;
  /** Bytes of bodies in transit, in both directions and all services, beyond which requests are refused: an eighth of the memory, at most 512 MiB. */
  readonly bodyBytesMax?: number;
  /** Seconds until an archived blob is back in an online tier: 5. With high priority, a fifth of it. */
  readonly rehydrationSeconds?: number;
  /** Accounts, containers, queues and tables that are created at the start where they are missing: a file in YAML or JSON, or its content. */
  readonly seed?: string | object;
  /** Let other machines read /metrics, which names accounts and queues. */
  readonly remoteMetrics?: boolean;
  /** Origins of other servers that copies may read from, as in https://example.com:8080: none. */
  readonly copyFrom?: readonly string[];
  /** Nothing is logged without it. */
  readonly log?: LogOptions;
}

export interface Endpoint {
  readonly service: ServedService;
  readonly host: string;
  /** 0: a free one. */
  readonly port: number;
  readonly keepAliveSeconds: number;
  /** The port is a default that other programs use, too: if one of them has it, the server starts without this service. */
  readonly isOptional?: true;
}

/** An address that the server was told to listen on. */
interface ListenEndpoint {
  readonly service: ServedService | 'smb';
  readonly host: string;
  readonly port: number;
}

export interface AccountSettings {
  /** How long a deleted container can be restored; 0: not at all. */
  readonly containerRetentionDays: number;
  /** Likewise, a deleted share. */
  readonly shareRetentionDays: number;
}

export interface HoldfastServer {
  /** For the first account, as every SDK takes it; empty if there is none. */
  readonly connectionString: string;
  /** With the name of the first account; empty if the service is not served. */
  readonly blobUrl: string;
  readonly queueUrl: string;
  readonly tableUrl: string;
  readonly fileUrl: string;
  /** smb://127.0.0.1:10445: a share's name follows; empty if SMB is not served. */
  readonly smbUrl: string;
  /** With https: 'auto', the authority that clients have to trust. */
  readonly authority: Authority | undefined;
  /** Finishes the running requests, for up to ten seconds, and closes everything. */
  stop(): Promise<void>;
  /** Removes all containers, queues, tables and settings. Only in memory or with a test clock. */
  reset(): Promise<void>;
  /** Changes settings of an account that no storage operation changes, and returns all of them. */
  setAccount(name: string, settings: Partial<AccountSettings>): Promise<AccountSettings>;
  readonly clock: {
    /** Moves the server's time forward. Only in memory or with a test clock. */
    advance(seconds: number): Promise<void>;
  };
}

export interface Authority {
  /** In PEM. */
  readonly certificate: string;
  /** Path of its file; undefined: in memory only. */
  readonly file: string | undefined;
}

/** A data folder, or a store that servers share. */
export type Where = string | { readonly partition: string; readonly extents: string };

export interface CheckResult {
  readonly rows: number;
  readonly containers: number;
  readonly blobs: number;
  /** The sum of the blobs' lengths. */
  readonly bytes: number;
  readonly queues: number;
  readonly messages: number;
  readonly tables: number;
  readonly entities: number;
  readonly shares: number;
  readonly files: number;
  /** For people: the counts, and what they should know though nothing is wrong. */
  readonly notes: readonly string[];
  /** The faults, in plain words. */
  readonly findings: readonly string[];
}

export interface CheckProgress {
  readonly what: 'counting rows' | 'checking rows' | 'reading bytes';
  readonly done: number;
  /** Undefined: not known yet. */
  readonly total: number | undefined;
}
