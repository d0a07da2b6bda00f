/** The reader of a content that may come as a structured body. */
import { commonErrors, errorFactory } from '../../services/common/errors.ts';
import { type SentContent, WHOLE_BYTES_MAX } from '../../services/common/upload.ts';
import type { BodyReader, Request } from '../operation.ts';
import { type ContentOptions, contentBody, expectedHashes } from '../params.ts';
import { DecodedStream, decodeWhole } from './decoded-stream.ts';
import { STRUCTURED_OVERHEAD_MAX, sentLength, structuredLength } from './headers.ts';

const fail = errorFactory(commonErrors);

/** Like contentBody. Everything after the reader sees the content alone; `bytesMax` is a limit of the content. */
export function structuredContent(options: ContentOptions): BodyReader<SentContent | Promise<SentContent>> {
  const plain = contentBody(options);
  const read = (whole: Buffer, request: Request) => plain.read(whole, request);
  const expectedMd5 = (request: Request) => expectedHashes(request, options.md5Headers).md5;
  return {
    ...plain,
    bytesMax: plain.bytesMax + STRUCTURED_OVERHEAD_MAX,
    check(request) {
      plain.check(request);
      if (sentLength(request) > plain.bytesMax) throw plain.tooLarge(request);
      if (structuredLength(request) !== undefined) rejectBodyHashes(request);
    },
    read(body, request) {
      const content = structuredLength(request);
      if (content === undefined) return read(body, request);
      return decodeWhole(body, { message: body.length, content }).then((decoded) => ({
        ...read(decoded.content, request),
        expected: { md5: expectedMd5(request), crc64: decoded.crc64 },
      }));
    },
    stream(bytes, request) {
      const content = structuredLength(request);
      if (content === undefined) return plain.stream!(bytes, request);
      // Complete once the bytes have been read: the CRC64 is at the end of the message.
      const expected: { md5: string | undefined; crc64?: string } = { md5: expectedMd5(request) };
      const lengths = { message: Number(request.headers['content-length']), content };
      const decoded = new DecodedStream(bytes, lengths, (crc64) => {
        expected.crc64 = crc64;
      });
      if (content > WHOLE_BYTES_MAX) return { length: content, expected, bytes: () => decoded };
      return decoded.readWhole(content).then((whole) => ({ ...read(whole, request), expected }));
    },
  };
}

/** Whether they would be of the content or of the message, no document says. */
function rejectBodyHashes({ headers }: Request): void {
  for (const name of ['content-md5', 'x-ms-content-crc64']) {
    if (headers[name] !== undefined) {
      throw fail('InvalidHeaderValue', { HeaderName: name, HeaderValue: String(headers[name]) });
    }
  }
}
