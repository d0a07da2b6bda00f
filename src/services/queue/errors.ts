/** Error codes of the Queue service. */
import { commonErrors, errorFactory, errorTable } from '../common/errors.ts';

const queueErrors = errorTable({
  ...commonErrors,
  InvalidMarker: [400, 'The specified marker is invalid.'],
  MessageNotFound: [404, 'The specified message does not exist.'],
  QueueAlreadyExists: [409, 'The specified queue already exists.'],
  QueueNotFound: [404, 'The specified queue does not exist.'],
});

export const fail = errorFactory(queueErrors);
