/** SPNEGO (RFC 4178, MS-SPNG): the envelope in which most clients send NTLM. */
import { WireError } from '../wire/reader.ts';
import { encodeElement, readElement, readElements } from './der.ts';

const TAG = {
  application: 0x60,
  context: 0xa0,
  sequence: 0x30,
  oid: 0x06,
  octets: 0x04,
  enumerated: 0x0a,
  general: 0x1b,
};

/** 1.3.6.1.5.5.2 */
const SPNEGO_OID = Buffer.from('2b0601050502', 'hex');
/** 1.3.6.1.4.1.311.2.2.10 */
const NTLM_OID = Buffer.from('2b06010401823702020a', 'hex');

export const NEG_STATE = { acceptCompleted: 0, acceptIncomplete: 1, reject: 2, requestMic: 3 } as const;

/** What a client sends, in either of its two forms. */
export interface ClientToken {
  /** Of a first message: the list that the MICs of both sides cover, and whether NTLM is the first of it, whose token is sent along. */
  readonly mechList:
    | { readonly encoded: Buffer; readonly offersNtlm: boolean; readonly prefersNtlm: boolean }
    | undefined;
  readonly token: Buffer | undefined;
  readonly mic: Buffer | undefined;
}

export function isSpnego(bytes: Buffer): boolean {
  return bytes[0] === TAG.application || bytes[0] === TAG.context + 1;
}

export function readClientToken(bytes: Buffer): ClientToken {
  if (bytes[0] === TAG.application) {
    const [oid, init] = readElements(readElement(bytes, TAG.application).content);
    if (oid?.tag !== TAG.oid || !oid.content.equals(SPNEGO_OID)) throw new WireError('not a token of SPNEGO');
    if (init?.tag !== TAG.context) throw new WireError('no NegTokenInit');
    return readFields(init.content, true);
  }
  return readFields(readElement(bytes, TAG.context + 1).content, false);
}

function readFields(content: Buffer, isInit: boolean): ClientToken {
  const fields = new Map(
    readElements(readElement(content, TAG.sequence).content).map((field) => [field.tag - TAG.context, field.content]),
  );
  const octets = (index: number) => {
    const field = fields.get(index);
    return field && readElement(field, TAG.octets).content;
  };
  const mechTypes = isInit ? fields.get(0) : undefined;
  if (isInit && !mechTypes) throw new WireError('a NegTokenInit without mechanisms');
  return { mechList: mechTypes && readMechList(mechTypes), token: octets(2), mic: octets(3) };
}

function readMechList(encoded: Buffer): NonNullable<ClientToken['mechList']> {
  const isNtlm = readElements(readElement(encoded, TAG.sequence).content).map(({ content }) =>
    content.equals(NTLM_OID),
  );
  return { encoded, offersNtlm: isNtlm.includes(true), prefersNtlm: isNtlm[0] === true };
}

/** In NEGOTIATE's answer: the mechanisms of the server. */
export function serverOffer(): Buffer {
  const hint = encodeElement(
    TAG.context + 3,
    encodeElement(
      TAG.sequence,
      encodeElement(
        TAG.context,
        encodeElement(TAG.general, Buffer.from('not_defined_in_RFC4178@please_ignore', 'latin1')),
      ),
    ),
  );
  const mechTypes = encodeElement(TAG.context, encodeElement(TAG.sequence, encodeElement(TAG.oid, NTLM_OID)));
  const init = encodeElement(TAG.context, encodeElement(TAG.sequence, mechTypes, hint));
  return encodeElement(TAG.application, encodeElement(TAG.oid, SPNEGO_OID), init);
}

export interface ServerToken {
  readonly state: number;
  /** Names NTLM as the mechanism: in the first answer. */
  readonly choosesNtlm?: boolean;
  readonly token?: Buffer | undefined;
  readonly mic?: Buffer | undefined;
}

export function writeServerToken({ state, choosesNtlm, token, mic }: ServerToken): Buffer {
  const fields = [encodeElement(TAG.context, encodeElement(TAG.enumerated, Buffer.from([state])))];
  if (choosesNtlm) fields.push(encodeElement(TAG.context + 1, encodeElement(TAG.oid, NTLM_OID)));
  if (token) fields.push(encodeElement(TAG.context + 2, encodeElement(TAG.octets, token)));
  if (mic) fields.push(encodeElement(TAG.context + 3, encodeElement(TAG.octets, mic)));
  return encodeElement(TAG.context + 1, encodeElement(TAG.sequence, ...fields));
}
