/**
 * Structs of the protocol, each declared once for reading, writing and its type.
 *
 *     export const EchoRequest = struct(4, { reserved: padding(2) });
 *     export type EchoRequest = Of<typeof EchoRequest>;
 *
 * The fields stand in the document's order. A tail (buffer, name, list) is an offset and a length in the fixed part, and bytes after it:
 * `tail(2)` has them in 16 bits each, `tail(4)` in 32; `tail(2, 8)` begins at a multiple of 8. Read tails are views of the message. A struct
 * is also a field of another, as in `fileId: FileId`.
 */
import { Reader, WireError } from './reader.ts';
import { Writer } from './writer.ts';

export interface Field<T> {
  /** Bytes in the fixed part. */
  readonly size: number;
  read(reader: Reader, fixedEnd: number): T;
  /** Returns what is to be written after the fixed part. */
  write(writer: Writer, value: T): DeferredWrite | undefined;
}

type DeferredWrite = () => void;

/** Fields without a value of their own. */
export interface Padding extends Field<undefined> {
  readonly isPadding: true;
}

type Fields = Readonly<Record<string, Field<unknown>>>;

type ValuesOf<F extends Fields> = {
  readonly [Name in keyof F as F[Name] extends Padding ? never : Name]: F[Name] extends Field<infer T> ? T : never;
};

export interface Struct<T> extends Field<T> {
  readonly structureSize: number | undefined;
  /** Reads at a position of a message: offsets count from the message's first byte. */
  decode(message: Buffer, position?: number): T;
  /** Appends to a message: offsets count from its first byte. */
  append(writer: Writer, value: T): void;
  /** As a message of its own. */
  encode(value: T): Buffer;
}

/** The type of a struct's values. */
export type Of<S> = S extends Struct<infer T> ? T : never;

const integer = (size: number, read: (reader: Reader) => number, write: (writer: Writer, value: number) => void) =>
  ({
    size,
    read,
    write: (writer: Writer, value: number) => {
      write(writer, value);
      return undefined;
    },
  }) satisfies Field<number>;

export const u8: Field<number> = integer(
  1,
  (reader) => reader.u8(),
  (writer, value) => writer.u8(value),
);
export const u16: Field<number> = integer(
  2,
  (reader) => reader.u16(),
  (writer, value) => writer.u16(value),
);
export const u32: Field<number> = integer(
  4,
  (reader) => reader.u32(),
  (writer, value) => writer.u32(value),
);
export const u64: Field<bigint> = {
  size: 8,
  read: (reader) => reader.u64(),
  write: (writer, value) => {
    writer.u64(value);
    return undefined;
  },
};

/** Reserved and ignored: written as zeros. */
export function padding(size: number): Padding {
  return {
    size,
    isPadding: true,
    read: (reader) => {
      reader.skip(size);
      return undefined;
    },
    write: (writer) => {
      writer.zeros(size);
      return undefined;
    },
  };
}

/** Bytes of a fixed number: a GUID, a signature, a key. */
export function bytes(size: number): Field<Buffer> {
  return {
    size,
    read: (reader) => reader.bytes(size),
    write: (writer, value) => {
      if (value.length !== size) throw new RangeError(`a field of ${size} bytes got ${value.length}`);
      writer.bytes(value);
      return undefined;
    },
  };
}

export interface TailLayout {
  /** Bytes of the two fields, in this order, and reserved bytes between them. */
  readonly offset: 1 | 2 | 4;
  readonly gap?: number;
  readonly length: 2 | 4;
  /** The length stands before the offset; the gap, as long as the length, repeats it, as in NTLM. */
  readonly lengthFirst?: true;
  readonly align?: number;
  /** An empty tail has offset 0, where the document says so; otherwise it has the offset that its bytes would have. */
  readonly emptyOffset?: 0;
}

/** An offset and a length of `size` bytes each. */
export function tail(size: 2 | 4, align = 1): Field<Buffer> {
  return tailOf({ offset: size, length: size, align });
}

export function tailOf({ offset, gap = 0, length, lengthFirst, align = 1, emptyOffset }: TailLayout): Field<Buffer> {
  const size = offset + gap + length;
  const [offsetAt, lengthAt] = lengthFirst ? [length + gap, 0] : [0, offset + gap];
  return {
    size,
    read: (reader, fixedEnd) => {
      const fields = reader.bytes(size);
      const [start, count] = [fields.readUIntLE(offsetAt, offset), fields.readUIntLE(lengthAt, length)];
      if (count === 0) return fields.subarray(0, 0);
      if (start < fixedEnd) throw new WireError(`a buffer at ${start} lies before the end of the fields, ${fixedEnd}`);
      return reader.view(start, count);
    },
    write: (writer, value) => {
      const position = writer.length;
      writer.zeros(size);
      writer.patch(position + lengthAt, length, value.length);
      if (lengthFirst) writer.patch(position + length, length, value.length);
      if (value.length === 0 && emptyOffset === 0) return undefined;
      return () => {
        if (value.length > 0) writer.align(align);
        writer.patch(position + offsetAt, offset, writer.length);
        writer.bytes(value);
      };
    },
  };
}

/** A length in the fixed part; the bytes follow that part without an offset. At most one of a struct. */
export function trailing(lengthSize: 1 | 2 | 4): Field<Buffer> {
  return {
    size: lengthSize,
    read: (reader, fixedEnd) => reader.view(fixedEnd, reader.bytes(lengthSize).readUIntLE(0, lengthSize)),
    write: (writer, value) => {
      const position = writer.length;
      writer.zeros(lengthSize);
      writer.patch(position, lengthSize, value.length);
      return () => writer.bytes(value);
    },
  };
}

/** Everything after the fixed part. At most one of a struct, as its last field. */
export const rest: Field<Buffer> = {
  size: 0,
  read: (reader) => reader.rest(),
  write: (writer, value) => () => writer.bytes(value),
};

/** The bytes of another field as text: UTF-16, little-endian. Lone surrogates stay what they are. */
export function utf16(inner: Field<Buffer>): Field<string> {
  return {
    size: inner.size,
    read: (reader, fixedEnd) => {
      const encoded = inner.read(reader, fixedEnd);
      if (encoded.length % 2 !== 0) throw new WireError(`a text of ${encoded.length} bytes is not UTF-16`);
      return encoded.toString('utf16le');
    },
    write: (writer, value) => inner.write(writer, Buffer.from(value, 'utf16le')),
  };
}

/** A command's body: it begins with its StructureSize, which counts an odd byte for a variable part. */
export function struct<F extends Fields>(structureSize: number, fields: F): Struct<ValuesOf<F>> {
  return build(fields, structureSize);
}

/** A struct without a StructureSize. */
export function record<F extends Fields>(fields: F): Struct<ValuesOf<F>> {
  return build(fields);
}

function build<F extends Fields>(fields: F, structureSize?: number): Struct<ValuesOf<F>> {
  const entries = Object.entries(fields) as unknown as readonly (readonly [string, Field<unknown>])[];
  const size = entries.reduce((sum, [, field]) => sum + field.size, structureSize === undefined ? 0 : 2);
  if (structureSize !== undefined && (structureSize & ~1) !== size) {
    throw new RangeError(`the fields of a struct of ${structureSize} bytes have ${size}`);
  }

  const read = (reader: Reader): ValuesOf<F> => {
    const fixedEnd = reader.position + size;
    if (structureSize !== undefined) {
      const found = reader.u16();
      if (found !== structureSize) throw new WireError(`StructureSize is ${structureSize}, not ${found}`);
    }
    const values: Record<string, unknown> = {};
    for (const [name, field] of entries) {
      const value = field.read(reader, fixedEnd);
      if (value !== undefined) values[name] = value;
    }
    return values as ValuesOf<F>;
  };

  const write = (writer: Writer, value: ValuesOf<F>): DeferredWrite | undefined => {
    const values = value as Readonly<Record<string, unknown>>;
    const deferred: DeferredWrite[] = [];
    if (structureSize !== undefined) writer.u16(structureSize);
    for (const [name, field] of entries) {
      const later = field.write(writer, values[name]);
      if (later) deferred.push(later);
    }
    if (deferred.length === 0) return undefined;
    return () => {
      for (const each of deferred) each();
    };
  };

  const append = (writer: Writer, value: ValuesOf<F>): void => write(writer, value)?.();
  return {
    size,
    structureSize,
    read,
    write,
    append,
    decode: (message, position = 0) => read(new Reader(message, position)),
    encode: (value) => {
      const writer = new Writer();
      append(writer, value);
      return writer.finish();
    },
  };
}
