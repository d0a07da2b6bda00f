/** `bytes` undefined: the end of the document. The first two bytes tell the encoding, and may arrive one by one. */
export function createXmlDecoder(refuse: (reason: string) => never): (bytes: Uint8Array | undefined) => string {
  let first: Uint8Array | undefined;
  let encoding = 'utf-8';
  let text: InstanceType<typeof TextDecoder> | undefined;
  return (bytes) => {
    let next = bytes;
    if (!text) {
      first = first && bytes ? Buffer.concat([first, bytes]) : (first ?? bytes);
      if (bytes && (!first || first.length < 2)) return '';
      if (first?.[0] === 0xff && first[1] === 0xfe) encoding = 'utf-16le';
      text = new TextDecoder(encoding, { fatal: true });
      next = first;
    }
    try {
      return text.decode(next, { stream: bytes !== undefined });
    } catch {
      return refuse(`The document is not valid ${encoding.toUpperCase()}.`);
    }
  };
}
