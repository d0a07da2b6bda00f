/** One client of an RPC interface on a named pipe: fragments in, fragments out. */
import { WireError } from '../wire/reader.ts';
import {
  type BindBody,
  FaultBody,
  OBJECT_BYTES,
  PDU_FLAG,
  PDU_HEAD_BYTES,
  PDU_TYPE,
  type Pdu,
  pduLength,
  RequestHead,
  ResponseBody,
  readBind,
  readPdu,
  writeBindAck,
  writePdu,
} from './pdu.ts';

export interface RpcInterface {
  readonly pipe: string;
  /** UUID and version. */
  readonly syntax: Buffer;
  /** Undefined: there is no such operation. Throws a WireError for arguments that cannot be read. */
  call(operation: number, stub: Buffer): Promise<Buffer | undefined>;
}

/** NDR in 32 bits, 8a885d04-1ceb-11c9-9fe8-08002b104860 version 2; NDR64 is refused. */
const NDR32 = Buffer.from('045d888aeb1cc9119fe808002b10486002000000', 'hex');

const FRAGMENT_BYTES = 4_280;
const FRAGMENT_BYTES_MIN = 1_024;
/** Of the arguments of a call, and of the packets that wait for their rest. */
const CALL_BYTES_MAX = 64 * 1_024;
const RESPONSE_HEAD_BYTES = 8;
const NCA_OPERATION_RANGE_ERROR = 0x1c01_0002;
const NCA_UNKNOWN_INTERFACE = 0x1c01_0003;
const RPC_X_BAD_STUB_DATA = 0x0000_06f7;

export class RpcEndpoint {
  readonly #interface: RpcInterface;
  #arrived = Buffer.alloc(0);
  /** The arguments of a call whose last fragment has not arrived. */
  #stub: readonly Buffer[] = [];
  #fragmentBytes = FRAGMENT_BYTES;
  /** The contexts that a bind has accepted. */
  readonly #contexts = new Set<number>();

  constructor(rpcInterface: RpcInterface) {
    this.#interface = rpcInterface;
  }

  /** Takes bytes of the client, whole packets or not, and returns the packets that answer them. */
  async receive(bytes: Buffer): Promise<Buffer[]> {
    this.#arrived = Buffer.concat([this.#arrived, bytes]);
    if (this.#arrived.length > CALL_BYTES_MAX) throw new WireError('too much for a call of RPC');
    const answers: Buffer[] = [];
    for (;;) {
      const length = pduLength(this.#arrived);
      if (length === undefined || length > this.#arrived.length) return answers;
      const packet = this.#arrived.subarray(0, length);
      this.#arrived = this.#arrived.subarray(length);
      answers.push(...(await this.#answer(readPdu(packet))));
    }
  }

  async #answer(pdu: Pdu): Promise<Buffer[]> {
    if (pdu.type === PDU_TYPE.bind) return [this.#bind(pdu, PDU_TYPE.bindAck)];
    if (pdu.type === PDU_TYPE.alterContext) return [this.#bind(pdu, PDU_TYPE.alterAck)];
    if (pdu.type === PDU_TYPE.request) return this.#request(pdu);
    throw new WireError(`a packet of RPC of type ${pdu.type}`);
  }

  #bind({ callId, body }: Pdu, type: number): Buffer {
    const bind = readBind(body);
    this.#fragmentBytes = Math.min(FRAGMENT_BYTES, Math.max(FRAGMENT_BYTES_MIN, bind.maxReceive));
    const results = bind.contexts.map((context) => {
      if (!this.#accepts(context)) return undefined;
      this.#contexts.add(context.id);
      return NDR32;
    });
    const group = bind.associationGroup || 1;
    const ack = writeBindAck(this.#fragmentBytes, group, `\\PIPE\\${this.#interface.pipe}`, results);
    return writePdu({ type, flags: PDU_FLAG.first | PDU_FLAG.last, callId }, ack);
  }

  #accepts({ abstractSyntax, transferSyntaxes }: BindBody['contexts'][number]): boolean {
    return abstractSyntax.equals(this.#interface.syntax) && transferSyntaxes.some((syntax) => syntax.equals(NDR32));
  }

  async #request({ flags, callId, body }: Pdu): Promise<Buffer[]> {
    const { contextId, operation, stub } = RequestHead.decode(body);
    if ((flags & PDU_FLAG.first) !== 0) this.#stub = [];
    this.#stub = [...this.#stub, (flags & PDU_FLAG.object) === 0 ? stub : stub.subarray(OBJECT_BYTES)];
    if (this.#stub.reduce((sum, part) => sum + part.length, 0) > CALL_BYTES_MAX) {
      throw new WireError('too much for a call of RPC');
    }
    if ((flags & PDU_FLAG.last) === 0) return [];
    const whole = Buffer.concat(this.#stub);
    this.#stub = [];
    if (!this.#contexts.has(contextId)) return [fault(callId, contextId, NCA_UNKNOWN_INTERFACE)];
    try {
      const answer = await this.#interface.call(operation, whole);
      return answer ? this.#respond(callId, contextId, answer) : [fault(callId, contextId, NCA_OPERATION_RANGE_ERROR)];
    } catch (error) {
      if (error instanceof WireError) return [fault(callId, contextId, RPC_X_BAD_STUB_DATA)];
      throw error;
    }
  }

  #respond(callId: number, contextId: number, answer: Buffer): Buffer[] {
    // Parts of a stub are multiples of 8, but for the last.
    const room = (this.#fragmentBytes - PDU_HEAD_BYTES - RESPONSE_HEAD_BYTES) & ~7;
    const fragments: Buffer[] = [];
    for (let at = 0; at === 0 || at < answer.length; at += room) {
      const isLast = at + room >= answer.length;
      const flags = (at === 0 ? PDU_FLAG.first : 0) | (isLast ? PDU_FLAG.last : 0);
      const stub = answer.subarray(at, at + room);
      const body = ResponseBody.encode({ allocationHint: answer.length - at, contextId, cancelCount: 0, stub });
      fragments.push(writePdu({ type: PDU_TYPE.response, flags, callId }, body));
    }
    return fragments;
  }
}

function fault(callId: number, contextId: number, status: number): Buffer {
  const body = FaultBody.encode({ allocationHint: 32, contextId, cancelCount: 0, status, reserved2: Buffer.alloc(4) });
  return writePdu({ type: PDU_TYPE.fault, flags: PDU_FLAG.first | PDU_FLAG.last, callId }, body);
}
