/**
 * Set Blob Tier, reads, writes and copies by the tier of the blob, as Microsoft's pages "Set Blob Tier", "Blob rehydration from the
 * archive tier" and the recorded answers have it, written down from them and not from the server's rules.
 */
export type TierName = 'Hot' | 'Cool' | 'Cold' | 'Archive';
export type Priority = 'Standard' | 'High';

export const tierNames: readonly TierName[] = ['Hot', 'Cool', 'Cold', 'Archive'];

/** The steps from a blob whose tier was never set: a tier, with a priority, or seconds that pass. */
export type TierAction = readonly [tier: TierName, priority?: Priority] | number;

export interface TierSituation {
  readonly name: string;
  readonly steps: readonly TierAction[];
  readonly tier: TierName;
  readonly pending?: readonly [to: TierName, priority: Priority];
}

/** A rehydration takes 5 seconds, with high priority 1. */
export const STANDARD_SECONDS = 5;
export const HIGH_SECONDS = 1;

// biome-ignore format: a table
export const tierSituations: readonly TierSituation[] = [
  { name: 'never set',                       steps: [],                                     tier: 'Hot' },
  { name: 'Hot',                             steps: [['Hot']],                              tier: 'Hot' },
  { name: 'Cool',                            steps: [['Cool']],                             tier: 'Cool' },
  { name: 'Cold',                            steps: [['Cold']],                             tier: 'Cold' },
  { name: 'Archive',                         steps: [['Archive']],                          tier: 'Archive' },
  { name: 'coming back to Hot',              steps: [['Archive'], ['Hot'], 4],              tier: 'Archive', pending: ['Hot', 'Standard'] },
  { name: 'coming back to Cool in a hurry',  steps: [['Archive'], ['Cool', 'High']],        tier: 'Archive', pending: ['Cool', 'High'] },
  { name: 'coming back to Cold, hastened',   steps: [['Archive'], ['Cold'], ['Cold', 'High']], tier: 'Archive', pending: ['Cold', 'High'] },
  { name: 'back in Hot',                     steps: [['Archive'], ['Hot'], 5],              tier: 'Hot' },
  { name: 'back in Cool by high priority',   steps: [['Archive'], ['Cool', 'High'], 1],     tier: 'Cool' },
  { name: 'back in Cold, hastened',          steps: [['Archive'], ['Cold'], ['Cold', 'High'], 1], tier: 'Cold' },
  { name: 'archived again',                  steps: [['Archive'], ['Hot'], 5, ['Archive']], tier: 'Archive' },
];

export interface SetTierCell {
  readonly title: string;
  readonly situation: TierSituation;
  readonly request: readonly [tier: TierName, priority?: Priority];
  readonly status: 200 | 202 | 409;
  /** What Get Blob Properties shows afterwards. */
  readonly after: { readonly tier: TierName; readonly pending?: readonly [to: TierName, priority: Priority] };
}

const PRIORITIES = [undefined, 'Standard', 'High'] as const;

export const setTierCells: readonly SetTierCell[] = tierSituations.flatMap((situation) =>
  tierNames.flatMap((tier) => PRIORITIES.map((priority) => cell(situation, tier, priority))),
);

function cell(situation: TierSituation, tier: TierName, priority: Priority | undefined): SetTierCell {
  const request = priority === undefined ? ([tier] as const) : ([tier, priority] as const);
  const title = `${request.join(', ')} of a blob that is ${situation.name}`;
  const make = (status: SetTierCell['status'], after: SetTierCell['after']) => ({
    ...{ title, situation, request, status, after },
  });
  const { pending } = situation;
  // A rehydration can be neither cancelled nor sent elsewhere; its priority rises and never falls.
  if (pending && pending[0] !== tier) return make(409, { tier: 'Archive', pending });
  if (pending) return make(202, { tier: 'Archive', pending: [tier, priority === 'High' ? 'High' : pending[1]] });
  if (situation.tier === 'Archive' && tier !== 'Archive') {
    return make(202, { tier: 'Archive', pending: [tier, priority ?? 'Standard'] });
  }
  return make(200, { tier });
}

export interface CopyCell {
  readonly title: string;
  readonly source: TierSituation;
  readonly tier: TierName | undefined;
  readonly status: 202 | 409;
  readonly code?: 'BlobArchived' | 'BlobBeingRehydrated';
  readonly after?: { readonly tier: TierName; readonly pending?: readonly [to: TierName, priority: Priority] };
}

/** To a name that nothing has yet. */
export const copyCells: readonly CopyCell[] = tierSituations.flatMap((source) =>
  [undefined, ...tierNames].map((tier): CopyCell => {
    const common = { title: `to ${tier ?? 'no named tier'} from a blob that is ${source.name}`, source, tier };
    if (source.pending) return { ...common, status: 409, code: 'BlobBeingRehydrated' };
    if (source.tier !== 'Archive') return { ...common, status: 202, after: { tier: tier ?? 'Hot' } };
    if (tier === undefined || tier === 'Archive') return { ...common, status: 409, code: 'BlobArchived' };
    return { ...common, status: 202, after: { tier: 'Archive', pending: [tier, 'Standard'] } };
  }),
);
