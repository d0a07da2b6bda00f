import { containerNameFault, type NameFault } from '../names.ts';

/** As containers are named; but no queue belongs to the service itself. */
export function queueNameFault(name: string): NameFault | undefined {
  return containerNameFault(name) ?? (name.startsWith('$') ? 'InvalidResourceName' : undefined);
}
