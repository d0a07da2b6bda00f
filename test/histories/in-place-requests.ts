/** Requests to append and page blobs on the wire, and what their bytes say. */

import {
  CELLS,
  formatPage,
  type InPlaceAnswer,
  type InPlaceRequest,
  type InPlaceType,
  pieceBytes,
} from './in-place-model.ts';
import type { Received, Sent } from './requests.ts';

/** The metadata has the id, because a new blob has no bytes that could. */
export function creating(target: string, type: InPlaceType, id: string, headers: Record<string, string>): Sent {
  const own: Record<string, string> =
    type === 'append'
      ? { 'x-ms-blob-type': 'AppendBlob' }
      : { 'x-ms-blob-type': 'PageBlob', 'x-ms-blob-content-length': String(CELLS.at(-1)!.to) };
  return ['PUT', target, { headers: { ...headers, ...own, 'x-ms-meta-id': id } }];
}

export function changing(target: string, request: InPlaceRequest): Sent {
  switch (request.kind) {
    case 'append': {
      const { piece, position } = request;
      const headers = position === undefined ? {} : { 'x-ms-blob-condition-appendpos': String(position) };
      return ['PUT', `${target}?comp=appendblock`, { headers, body: Buffer.from(lineOf(piece, pieceBytes(piece))) }];
    }
    case 'seal':
      return ['PUT', `${target}?comp=seal`, {}];
    case 'set sequence': {
      const { action, number } = request;
      const sent = number === undefined ? {} : { 'x-ms-blob-sequence-number': String(number) };
      return ['PUT', `${target}?comp=properties`, { headers: { 'x-ms-sequence-number-action': action, ...sent } }];
    }
    default: {
      const { cells, sequenceMax } = request;
      const written = CELLS.slice(...cells);
      const headers = {
        'x-ms-page-write': request.kind === 'write cells' ? 'update' : 'clear',
        'x-ms-range': `bytes=${written[0]!.from}-${written.at(-1)!.to - 1}`,
        ...(sequenceMax === undefined ? {} : { 'x-ms-if-sequence-number-le': String(sequenceMax) }),
      };
      if (request.kind === 'clear cells') return ['PUT', `${target}?comp=page`, { headers }];
      const body = Buffer.from(written.map(({ from, to }) => lineOf(request.text, to - from)).join(''));
      return ['PUT', `${target}?comp=page`, { headers, body }];
    }
  }
}

const lineOf = (text: string, bytes: number) => `${text.padEnd(bytes - 1, '.')}\n`;

export function answerOf({ kind }: InPlaceRequest, { headers }: Received): InPlaceAnswer {
  const number = (name: string) => Number(headers[name]);
  if (kind === 'append')
    return { position: number('x-ms-blob-append-offset'), blocks: number('x-ms-blob-committed-block-count') };
  return kind === 'seal' ? {} : { sequence: number('x-ms-blob-sequence-number') };
}

/** The content as the model has it; undefined: a block blob. Bytes that nobody wrote are none of its contents. */
export function inPlaceContent({ headers, body }: Received): string | undefined {
  const id = String(headers['x-ms-meta-id']);
  const torn = (what: string) => `torn ${what} of ${body.length} bytes`;
  const textOf = (line: string, bytes: number) => {
    const text = line.replace(/\.*\n?$/, '');
    return line === lineOf(text, bytes) ? text : torn(text);
  };
  if (headers['x-ms-blob-type'] === 'AppendBlob') {
    const lines = body.toString('latin1').match(/[^\n]*\n|[^\n]+$/g) ?? [];
    const pieces = lines.map((line) => textOf(line, pieceBytes(line.replace(/\.*\n?$/, ''))));
    if (Number(headers['x-ms-blob-committed-block-count']) !== pieces.length) pieces.push(torn('count'));
    return `append ${[id, ...pieces].join('+')}${headers['x-ms-blob-sealed'] === 'true' ? '!' : ''}`;
  }
  if (headers['x-ms-blob-type'] !== 'PageBlob') return undefined;
  const cells = CELLS.map(({ from, to }) => {
    const bytes = body.subarray(from, to);
    return bytes.every((byte) => byte === 0) ? '' : textOf(bytes.toString('latin1'), to - from);
  });
  return formatPage(id, cells, Number(headers['x-ms-blob-sequence-number']));
}
