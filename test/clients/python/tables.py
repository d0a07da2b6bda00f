import uuid
from datetime import datetime, timedelta, timezone

from azure.core import MatchConditions
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceModifiedError, ResourceNotFoundError
from azure.data.tables import (
    EdmType,
    EntityProperty,
    TableAccessPolicy,
    TableClient,
    TableCorsRule,
    TableSasPermissions,
    TableServiceClient,
    TableTransactionError,
    UpdateMode,
    generate_table_sas,
)

from harness import ACCOUNT, CONNECTION_STRING, KEY, OPTIONS, check, equal, run

service = TableServiceClient.from_connection_string(CONNECTION_STRING, **OPTIONS)
credential = AzureNamedKeyCredential(ACCOUNT, KEY)


def new_table():
    table = service.get_table_client(f't{uuid.uuid4().hex}')
    table.create_table()
    return table


def raises(kind, call, code=None):
    try:
        call()
    except kind as error:
        seen = str(getattr(error, 'error_code', ''))
        assert code is None or seen.split('.')[-1].replace('_', '').lower() == code.lower(), f'{seen} instead of {code}'
        return error
    raise AssertionError(f'accepted instead of {kind.__name__}')


def values(entity):
    return {name: value for name, value in entity.items()}


def rows(entities):
    return [entity['RowKey'] for entity in entities]


@check('makes, lists and removes tables')
def tables():
    prefix = f't{uuid.uuid4().hex[:8]}'
    for end in ('b', 'a'):
        service.create_table(prefix + end)
    raises(ResourceExistsError, lambda: service.create_table((prefix + 'A').upper()), 'TableAlreadyExists')
    found = service.query_tables(f"TableName ge '{prefix}' and TableName lt '{prefix}z'", results_per_page=1)
    equal([table.name for table in found], [prefix + 'a', prefix + 'b'])
    service.create_table_if_not_exists(prefix + 'a')
    for end in ('b', 'a'):
        service.delete_table(prefix + end)
    equal(list(service.query_tables(f"TableName eq '{prefix}a'")), [])
    raises(ValueError, lambda: service.create_table('no-name'))


@check('keeps a value of every type as it was')
def types():
    table = new_table()
    sent = {
        'PartitionKey': "it's",
        'RowKey': 'r/\u00e9\U0001f600'.replace('/', ''),
        'Text': 'tiny \u00e9 \U0001f600 "quoted"',
        'Yes': True,
        'Number': 42,
        'Long': EntityProperty(2**60, EdmType.INT64),
        'Double': 1.0,
        'Small': 1e-7,
        'Endless': float('inf'),
        'Bytes': b'\x00\xff',
        'Guid': uuid.uuid4(),
        'When': datetime(2020, 2, 29, 12, 30, 15, 123456, tzinfo=timezone.utc),
        'Empty': '',
    }
    table.create_entity(sent)
    seen = table.get_entity(sent['PartitionKey'], sent['RowKey'])
    for name, value in sent.items():
        if name == 'Long':
            equal((seen[name].value, seen[name].edm_type), (value.value, EdmType.INT64))
        elif name == 'When':
            equal(seen[name].replace(tzinfo=timezone.utc), value)
        else:
            equal((name, seen[name]), (name, value))
    assert seen.metadata['etag'] and seen.metadata['timestamp']
    raises(ResourceExistsError, lambda: table.create_entity(sent))


@check('replaces, merges and removes by the ETag, and learns when it is too late')
def concurrency():
    table = new_table()
    first = table.create_entity({'PartitionKey': 'p', 'RowKey': 'r', 'a': 1, 'b': 2})
    etag = first['etag']
    match = {'match_condition': MatchConditions.IfNotModified}
    second = table.update_entity({'PartitionKey': 'p', 'RowKey': 'r', 'a': 3}, UpdateMode.MERGE, etag=etag, **match)
    assert second['etag'] > etag
    late = lambda: table.update_entity({'PartitionKey': 'p', 'RowKey': 'r'}, UpdateMode.REPLACE, etag=etag, **match)
    raises(ResourceModifiedError, late, 'UpdateConditionNotSatisfied')
    equal(values(table.get_entity('p', 'r')), {'PartitionKey': 'p', 'RowKey': 'r', 'a': 3, 'b': 2})
    table.update_entity({'PartitionKey': 'p', 'RowKey': 'r', 'c': 4}, UpdateMode.REPLACE)
    equal(values(table.get_entity('p', 'r')), {'PartitionKey': 'p', 'RowKey': 'r', 'c': 4})
    raises(ResourceModifiedError, lambda: table.delete_entity('p', 'r', etag=etag, **match))
    table.upsert_entity({'PartitionKey': 'p', 'RowKey': 'r', 'd': 5}, UpdateMode.MERGE)
    table.upsert_entity({'PartitionKey': 'p', 'RowKey': 'new', 'd': 5}, UpdateMode.REPLACE)
    equal(table.get_entity('p', 'r', select=['c', 'd'])['d'], 5)
    table.delete_entity('p', 'r')
    raises(ResourceNotFoundError, lambda: table.get_entity('p', 'r'), 'ResourceNotFound')
    missing = lambda: table.update_entity({'PartitionKey': 'p', 'RowKey': 'r'}, UpdateMode.REPLACE)
    raises(ResourceNotFoundError, missing, 'ResourceNotFound')


@check('changes a hundred entities of a partition at once, or none')
def transactions():
    table = new_table()
    many = [('create', {'PartitionKey': 'p', 'RowKey': f'{row:03}', 'n': row}) for row in range(100)]
    results = table.submit_transaction(many)
    equal(len([result['etag'] for result in results]), 100)
    mixed = [
        ('update', {'PartitionKey': 'p', 'RowKey': '000', 'n': 1}, {'mode': UpdateMode.REPLACE}),
        ('upsert', {'PartitionKey': 'p', 'RowKey': 'new', 'n': 1}),
        ('delete', {'PartitionKey': 'p', 'RowKey': '001'}),
        ('create', {'PartitionKey': 'p', 'RowKey': '002'}),
    ]
    error = raises(TableTransactionError, lambda: table.submit_transaction(mixed))
    equal((error.status_code, error.index), (409, 3))
    equal(len(list(table.query_entities("PartitionKey eq 'p'"))), 100)
    table.submit_transaction(mixed[:3])
    raises(ResourceNotFoundError, lambda: table.get_entity('p', '001'))
    twice = [('upsert', {'PartitionKey': 'p', 'RowKey': 'x'})] * 2
    equal(raises(TableTransactionError, lambda: table.submit_transaction(twice)).error_code, 'InvalidDuplicateRow')
    other = [('upsert', {'PartitionKey': part, 'RowKey': 'x'}) for part in ('p', 'q')]
    raises(ValueError, lambda: table.submit_transaction(other))


@check('finds by every type, with parameters, and pages through what it finds')
def queries():
    table = new_table()
    when = datetime(2024, 1, 1, tzinfo=timezone.utc)
    guids = [uuid.UUID(int=row) for row in range(10)]
    table.submit_transaction([
        ('create', {
            'PartitionKey': 'p', 'RowKey': f'{row}', 'n': row, 'half': row / 2, 'even': row % 2 == 0, 'name': f"n'{row}",
            'long': EntityProperty(2**40 + row, EdmType.INT64), 'at': when + timedelta(days=row), 'id': guids[row],
            'bytes': bytes([row]),
        }) for row in range(10)
    ])
    for text, expected in (
        ('n ge 8', ['8', '9']),
        ('8 le n', ['8', '9']),
        ('half eq 1.5', ['3']),
        ('even eq true and n gt 5', ['6', '8']),
        ("name eq 'n''4'", ['4']),
        (f'long eq {2**40 + 7}L', ['7']),
        ("at lt datetime'2024-01-03T00:00:00Z'", ['0', '1']),
        (f"id eq guid'{guids[5]}'", ['5']),
        ("bytes eq X'02'", ['2']),
        ("not (n lt 9) or RowKey eq '0'", ['0', '9']),
        ("PartitionKey eq 'p' and RowKey gt '7'", ['8', '9']),
        ('absent eq 1', []),
    ):
        equal((text, rows(table.query_entities(text))), (text, expected))
    named = table.query_entities('name eq @name and at eq @at', parameters={'name': "n'4", 'at': when + timedelta(days=4)})
    equal(rows(named), ['4'])
    pages = [rows(page) for page in table.list_entities(results_per_page=4, select=['RowKey']).by_page()]
    equal(pages, [['0', '1', '2', '3'], ['4', '5', '6', '7'], ['8', '9']])
    raises(HttpResponseError, lambda: list(table.query_entities('n eq')), 'InvalidInput')


@check('lets in who has a signature, as far as it reaches')
def signatures():
    table = new_table()
    for part in ('a', 'b', 'c'):
        table.create_entity({'PartitionKey': part, 'RowKey': 'r'})
    later = datetime.now(timezone.utc) + timedelta(hours=1)
    token = generate_table_sas(
        credential, table.table_name, permission=TableSasPermissions(read=True, add=True), expiry=later,
        start_pk='b', end_pk='b',
    )
    guest = TableClient(table.url, table.table_name, credential=AzureSasCredential(token), **OPTIONS)
    equal([entity['PartitionKey'] for entity in guest.list_entities()], ['b'])
    guest.create_entity({'PartitionKey': 'b', 'RowKey': 'new'})
    outside = raises(HttpResponseError, lambda: guest.create_entity({'PartitionKey': 'c', 'RowKey': 'new'}))
    equal(outside.status_code, 403)
    equal(raises(HttpResponseError, lambda: guest.delete_entity('b', 'r')).status_code, 403)
    policy = TableAccessPolicy(permission='r', expiry=later, start=later - timedelta(hours=2))
    table.set_table_access_policy({'readers': policy})
    equal(table.get_table_access_policy()['readers'].permission, 'r')
    token = generate_table_sas(credential, table.table_name, policy_id='readers')
    guest = TableClient(table.url, table.table_name, credential=AzureSasCredential(token), **OPTIONS)
    equal(len(list(guest.list_entities())), 4)
    table.set_table_access_policy({})
    equal(raises(HttpResponseError, lambda: list(guest.list_entities())).status_code, 403)


@check('sets and reads the properties of the service')
def properties():
    rule = TableCorsRule(allowed_origins=['https://page.example'], allowed_methods=['GET'], max_age_in_seconds=5)
    service.set_service_properties(cors=[rule])
    equal([each.allowed_origins for each in service.get_service_properties()['cors']], [['https://page.example']])
    service.set_service_properties(cors=[])


run()
