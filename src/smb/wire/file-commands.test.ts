import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CAPTURED } from '../../../test/support/captured-smb.ts';
import { readChain } from './chain.ts';
import { ChangeNotifyRequest, ChangeNotifyResponse } from './change-notify.ts';
import { CloseRequest, CloseResponse } from './close.ts';
import { CreateRequest, CreateResponse } from './create.ts';
import {
  AaplQuery,
  AaplResponse,
  LeaseContext,
  MaximalAccessResponse,
  QueryOnDiskIdResponse,
  readCreateContexts,
  writeCreateContexts,
} from './create-contexts.ts';
import { DIRECTORY_LEVELS, writeDirectoryEntry } from './directory-info.ts';
import {
  CopyChunkResponse,
  FileAllocatedRange,
  FileZeroDataInformation,
  ResumeKeyResponse,
  readCopyChunks,
  SRV_COPYCHUNK,
} from './file-fsctl.ts';
import * as fileInfo from './file-info.ts';
import { FlushRequest } from './flush.ts';
import * as fsInfo from './fs-info.ts';
import { LockRequest } from './lock.ts';
import { QueryDirectoryRequest, QueryDirectoryResponse } from './query-directory.ts';
import { QueryInfoRequest, QueryInfoResponse } from './query-info.ts';
import { ReadRequest, ReadResponse } from './read.ts';
import { WireError } from './reader.ts';
import { SetInfoRequest, SetInfoResponse } from './set-info.ts';
import type { Struct } from './struct.ts';
import { WriteRequest, WriteResponse } from './write.ts';
import { Writer } from './writer.ts';

const HEADER_BYTES = 64;
const captured = (name: string) => Buffer.concat([Buffer.alloc(HEADER_BYTES), Buffer.from(CAPTURED[name]!, 'hex')]);

const COMMANDS: Readonly<Record<string, Struct<unknown>>> = {
  ...{ ChangeNotifyRequest, ChangeNotifyResponse, CloseRequest, CloseResponse, CreateRequest, CreateResponse },
  ...{ FlushRequest, LockRequest, QueryDirectoryRequest, QueryDirectoryResponse, QueryInfoRequest, QueryInfoResponse },
  ...{ ReadRequest, ReadResponse, SetInfoRequest, SetInfoResponse, WriteRequest, WriteResponse },
  ...{ AaplQuery, AaplResponse, LeaseContext, MaximalAccessResponse, QueryOnDiskIdResponse },
  ...{ CopyChunkResponse, FileAllocatedRange, FileZeroDataInformation, ResumeKeyResponse, SRV_COPYCHUNK },
  ...structsOf(fileInfo),
  ...structsOf(fsInfo),
} as Readonly<Record<string, Struct<unknown>>>;

function structsOf(module: object): Record<string, Struct<unknown>> {
  return Object.fromEntries(
    Object.entries(module).filter(([, each]) => typeof (each as Struct<unknown>).decode === 'function'),
  );
}

/** Any message that the struct reads: junk, with the StructureSize that it wants, and offsets that may lie in it. */
const junk = fc.uint8Array({ minLength: 0, maxLength: 200 }).map((bytes) => Buffer.from(bytes));

describe.each(Object.entries(COMMANDS))('%s', (_, struct) => {
  it('reads what it wrote of whatever it can read, and refuses junk by a WireError alone', () => {
    fc.assert(
      fc.property(junk, (bytes) => {
        const message = Buffer.concat([Buffer.alloc(HEADER_BYTES), bytes]);
        if (struct.structureSize !== undefined && bytes.length >= 2)
          message.writeUInt16LE(struct.structureSize, HEADER_BYTES);
        const value = decodeOrRefuse(struct, message);
        if (value === undefined) return;
        const writer = new Writer();
        writer.zeros(HEADER_BYTES);
        struct.append(writer, value);
        expect(struct.decode(writer.finish(), HEADER_BYTES)).toEqual(value);
      }),
      { numRuns: 300 },
    );
  });
});

function decodeOrRefuse<T>(struct: Struct<T>, message: Buffer): T | undefined {
  try {
    return struct.decode(message, HEADER_BYTES);
  } catch (error) {
    expect(error).toBeInstanceOf(WireError);
    return undefined;
  }
}

describe('A message of Samba', () => {
  const bodies = Object.keys(CAPTURED).map((name) => [name, COMMANDS[name.split(' ')[0]!]!] as const);
  it.each(bodies)('%s is written again as it was', (name, struct) => {
    const message = captured(name);
    const writer = new Writer();
    writer.zeros(HEADER_BYTES);
    struct.append(writer, struct.decode(message, HEADER_BYTES));
    const written = writer.finish();
    // Padding at the end of a message is optional.
    expect(written.equals(message.subarray(0, written.length))).toBe(true);
    expect(message.subarray(written.length).every((byte) => byte === 0)).toBe(true);
  });

  it('has the fields that smbclient and smbd meant', () => {
    expect(CreateRequest.decode(captured('CreateRequest'), HEADER_BYTES)).toMatchObject({
      ...{ name: 'small.txt', createDisposition: 5, impersonationLevel: 2 },
    });
    expect(WriteRequest.decode(captured('WriteRequest'), HEADER_BYTES)).toMatchObject({
      ...{ data: Buffer.from('hello\n'), offset: 0n },
    });
    expect(ReadResponse.decode(captured('ReadResponse'), HEADER_BYTES).data.toString()).toBe('hello\n');
    const rename = SetInfoRequest.decode(captured('SetInfoRequest rename'), HEADER_BYTES);
    expect(fileInfo.FileRenameInformation.decode(rename.buffer)).toMatchObject({ fileName: 'd\\b.txt' });
    const { output } = QueryInfoResponse.decode(captured('QueryInfoResponse'), HEADER_BYTES);
    expect(fileInfo.FileAllInformation.decode(output)).toMatchObject({ standard: { endOfFile: 6n, directory: 0 } });
  });

  it('lists entries as this server writes them', () => {
    const request = QueryDirectoryRequest.decode(captured('QueryDirectoryRequest'), HEADER_BYTES);
    const level = DIRECTORY_LEVELS.get(request.fileInformationClass)!;
    const { output } = QueryDirectoryResponse.decode(captured('QueryDirectoryResponse'), HEADER_BYTES);
    const [entry] = readChain(output, { minimum: level.size, max: 10 });
    const values = level.decode(entry!);
    const name = entry!.subarray(level.size, level.size + values.fileNameLength).toString('utf16le');
    const shortName = values.shortName.toString('utf16le', 0, values.shortNameLength);
    const written = writeDirectoryEntry(level, name, { ...values, shortName });
    expect(level.decode(written)).toEqual({ ...values, fileIndex: 0, eaSize: 0 });
    expect(written.length).toBe(level.size + values.fileNameLength);
  });
});

describe('Create contexts', () => {
  it('are read as they were written', () => {
    const context = fc.record({
      name: fc.oneof(
        fc.constantFrom('MxAc', 'QFid', 'RqLs'),
        fc.string({ minLength: 16, maxLength: 16, unit: 'grapheme-ascii' }),
      ),
      data: fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes)),
    });
    fc.assert(
      fc.property(fc.array(context, { maxLength: 8 }), (contexts) => {
        expect(readCreateContexts(writeCreateContexts(contexts))).toEqual(contexts);
      }),
    );
  });

  it('of junk are a WireError', () => {
    fc.assert(
      fc.property(junk, (bytes) => {
        try {
          readCreateContexts(bytes);
        } catch (error) {
          expect(error).toBeInstanceOf(WireError);
        }
      }),
    );
  });
});

describe('The chunks of a copy', () => {
  it('of junk, or of fewer bytes than announced, are a WireError', () => {
    fc.assert(
      fc.property(junk, (bytes) => {
        try {
          expect(readCopyChunks(bytes).chunks.length).toBeLessThan(20);
        } catch (error) {
          expect(error).toBeInstanceOf(WireError);
        }
      }),
    );
  });
});
