/** Error codes of the Table service. */
import { commonErrors, errorFactory, errorTable } from '../common/errors.ts';

export const tableErrors = errorTable({
  ...commonErrors,
  CommandsInBatchActOnDifferentPartitions: [400, 'All commands in a batch must operate on same entity group.'],
  DuplicatePropertiesSpecified: [400, 'A property is specified more than one time.'],
  EntityAlreadyExists: [409, 'The specified entity already exists.'],
  EntityTooLarge: [400, 'The entity is larger than the maximum allowed size (1MB).'],
  InvalidDuplicateRow: [
    400,
    'The batch request contains multiple changes with same row key. An entity can appear only once in a batch request.',
  ],
  /** A value that is none of its type, or a malformed body. */
  InvalidEntity: [400, 'An error occurred while processing this request.', 'InvalidInput'],
  InvalidEtag: [
    400,
    'The etag value specified in one of the request headers is not valid. Please make sure only one etag value is specified and is valid.',
    'InvalidInput',
  ],
  InvalidValueType: [400, 'The value specified is invalid.'],
  KeyValueTooLarge: [
    400,
    "The key property value exceeds the maximum allowed size (1KB). Key property values are UTF-16 encoded and can't be larger than 1KB.",
    'PropertyValueTooLarge',
  ],
  NameOutOfRange: [400, 'The specified resource name length is not within the permissible limits.', 'OutOfRangeInput'],
  PropertiesNeedValue: [400, 'The values are not specified for all properties in the entity.'],
  PropertyNameInvalid: [400, 'The property name is invalid.'],
  PropertyNameTooLong: [400, 'The property name exceeds the maximum allowed length (255).'],
  PropertyValueTooLarge: [
    400,
    'The property value exceeds the maximum allowed size (64KB). If the property value is a string, it is UTF-16 encoded and the maximum number of characters should be 32K or less.',
  ],
  TableAlreadyExists: [409, 'The table specified already exists.'],
  TableNotFound: [404, 'The table specified does not exist.'],
  TooManyChanges: [400, 'The batch request operation exceeds the maximum 100 changes per change set.', 'InvalidInput'],
  TooManyProperties: [
    400,
    'The entity contains more properties than allowed. Each entity can include up to 252 properties to store data. Each entity also has 3 system properties.',
  ],
  UpdateConditionNotSatisfied: [412, 'The update condition specified in the request was not satisfied.'],
});

export const fail = errorFactory(tableErrors);
