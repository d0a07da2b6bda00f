import { containerNameFault, type NameFault } from '../names.ts';

/** The rules for containers, but without names that belong to the service. */
export function queueNameFault(name: string): NameFault | undefined {
  return containerNameFault(name) ?? (name.startsWith('$') ? 'InvalidResourceName' : undefined);
}
