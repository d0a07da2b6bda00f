/** The plan of a seed: everything that can be judged without the store is judged here, before anything is written. */
import { accountKeysFault, accountNameFault } from '../../rules/account-names.ts';
import { putFault, TTL_SECONDS_DEFAULT, VISIBILITY_SECONDS_MAX } from '../../rules/queue/messages.ts';
import { prepareMessage, type SentMessage } from '../../services/queue/put-message.ts';
import { createQueue } from '../../services/queue/queues.ts';
import { readSeed } from './read-seed.ts';
import { addContainer } from './seed-blobs.ts';
import { checkedName, readMetadata } from './seed-checks.ts';
import { addShare } from './seed-files.ts';
import type { SeedNode } from './seed-node.ts';
import { type SeedScope, type SeedSteps, withPlace } from './seed-step.ts';
import { addTable } from './seed-tables.ts';

export interface SeedAccount {
  readonly node: SeedNode;
  /** Undefined: the account has to exist. */
  readonly keys: readonly string[] | undefined;
}

export interface SeedPlan extends SeedSteps {
  readonly root: SeedNode;
  readonly accounts: readonly SeedAccount[];
}

/** A queue and its messages are one commit. */
const MESSAGES_MAX = 1_000;
const SERVICES = ['containers', 'queues', 'tables', 'shares'] as const;

/** Throws a StartError with the place of the fault. */
export async function planSeed(seed: string | object): Promise<SeedPlan> {
  const { root, folder } = readSeed(seed);
  const steps: SeedSteps = { parents: [], children: [] };
  const { accounts: named, ...ofFirst } = root.fields(['accounts', ...SERVICES]);
  const accounts: SeedAccount[] = [];
  await addServices(ofFirst, { account: undefined, folder, steps });
  for (const node of named?.entries() ?? []) {
    const { keys, ...services } = node.fields(['keys', ...SERVICES]);
    accounts.push({ node, keys: readKeys(node, keys) });
    await addServices(services, { account: node.name, folder, steps });
  }
  return { root, accounts, ...steps };
}

type ServiceNodes = { readonly [Name in (typeof SERVICES)[number]]?: SeedNode };

async function addServices({ containers, queues, tables, shares }: ServiceNodes, scope: SeedScope): Promise<void> {
  for (const node of containers?.entries() ?? []) addContainer(node, scope);
  for (const node of queues?.entries() ?? []) addQueue(node, scope);
  for (const node of tables?.entries() ?? []) await addTable(node, scope);
  for (const node of shares?.entries() ?? []) addShare(node, scope);
}

function readKeys(account: SeedNode, keys: SeedNode | undefined): readonly string[] | undefined {
  const nameFault = accountNameFault(account.name);
  if (nameFault) throw account.fault(nameFault);
  const texts = keys?.items().map((key) => key.text());
  const fault = texts && accountKeysFault(texts);
  if (fault) throw keys!.fault(fault);
  return texts;
}

function addQueue(node: SeedNode, { account, steps }: SeedScope): void {
  const { metadata, messages, encoding } = node.fields(['metadata', 'messages', 'encoding']);
  const encode = encoding?.choice(['base64', 'text']) === 'base64' ? toBase64 : (text: string) => text;
  const items = messages?.items() ?? [];
  if (items.length > MESSAGES_MAX)
    throw messages!.fault(`there are ${items.length} messages, and at most ${MESSAGES_MAX} can be`);
  const input = {
    queue: checkedName(node, 'queue'),
    metadata: readMetadata(metadata),
    messages: items.map((item) => readMessage(item, encode)),
  };
  steps.parents.push({
    node,
    account,
    existsCode: 'QueueAlreadyExists',
    run: (storage) => createQueue(storage, input),
  });
}

function toBase64(text: string): string {
  return Buffer.from(text).toString('base64');
}

/** Functions of Azure expect messages in Base64; the SDKs send them as they are. */
function readMessage(node: SeedNode, encode: (text: string) => string): SentMessage {
  if (!node.isMap()) return checkedMessage(node, { text: encode(node.text()) });
  const { text, visibilitySeconds, ttlSeconds } = node.fields(['text', 'visibilitySeconds', 'ttlSeconds']);
  if (!text) throw node.fault('a message has a text');
  const [visibility, ttl] = [visibilitySeconds?.whole(), ttlSeconds?.whole()];
  const fault = putFault(visibility ?? 0, ttl ?? TTL_SECONDS_DEFAULT);
  if (fault?.parameter === 'messagettl')
    throw ttlSeconds!.fault('it is at least 1, or -1 for a message that does not expire');
  if (fault)
    throw visibilitySeconds!.fault(
      `it is from 0 to ${VISIBILITY_SECONDS_MAX}, and less than ttlSeconds, which is ${TTL_SECONDS_DEFAULT} unless it is given`,
    );
  return checkedMessage(node, { text: encode(text.text()), visibilitySeconds: visibility, ttlSeconds: ttl });
}

function checkedMessage(node: SeedNode, message: SentMessage): SentMessage {
  try {
    prepareMessage(message);
    return message;
  } catch (error) {
    throw withPlace(node, error);
  }
}
