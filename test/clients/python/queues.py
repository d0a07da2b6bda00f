import uuid
from datetime import datetime, timedelta, timezone

from azure.core.exceptions import ResourceExistsError, ResourceNotFoundError
from azure.storage.queue import AccessPolicy, AccountSasPermissions, BinaryBase64DecodePolicy, BinaryBase64EncodePolicy
from azure.storage.queue import CorsRule, QueueClient, QueueSasPermissions, QueueServiceClient, ResourceTypes
from azure.storage.queue import TextBase64DecodePolicy, TextBase64EncodePolicy, generate_account_sas, generate_queue_sas

from harness import ACCOUNT, CONNECTION_STRING, KEY, OPTIONS, check, equal, refused, run

service = QueueServiceClient.from_connection_string(CONNECTION_STRING, **OPTIONS)
URL = f'{service.scheme}://{service.primary_hostname}'


def new_queue(**options):
    queue = service.get_queue_client(f'q-{uuid.uuid4()}', **OPTIONS)
    queue.create_queue(**options)
    return queue


def later():
    return datetime.now(timezone.utc) + timedelta(hours=1)


def queue_with(queue, sas):
    return QueueClient(URL, queue.queue_name, credential=sas, **OPTIONS)


def texts(queue):
    return [message.content for message in queue.peek_messages(max_messages=32)]


@check('makes, lists, describes and removes queues')
def queues():
    prefix = f'q-{uuid.uuid4()}'
    for end in ('b', 'a', 'c'):
        service.create_queue(f'{prefix}-{end}', metadata={'end': end})
    pages = service.list_queues(name_starts_with=prefix, include_metadata=True, results_per_page=2).by_page()
    listed = [[(each.name, each.metadata) for each in page] for page in pages]
    expected = [(f'{prefix}-{end}', {'end': end}) for end in ('a', 'b', 'c')]
    equal(listed, [expected[:2], expected[2:]])
    queue = service.get_queue_client(f'{prefix}-a')
    queue.set_queue_metadata({'other': 'Value'})
    properties = queue.get_queue_properties()
    equal((properties.name, properties.metadata, properties.approximate_message_count), (queue.queue_name, {'other': 'Value'}, 0))
    for end in ('a', 'b', 'c'):
        service.delete_queue(f'{prefix}-{end}')
    equal(list(service.list_queues(name_starts_with=prefix)), [])
    refused(404, 'QueueNotFound', queue.get_queue_properties)


@check('learns that a queue is there already, the same or another')
def again():
    queue = new_queue(metadata={'a': '1'})
    for value, status in (('1', 204), ('2', 409)):
        try:
            queue.create_queue(metadata={'a': value})
        except ResourceExistsError as error:
            equal(error.response.status_code, status)
        else:
            raise AssertionError('made again')
    equal(queue.get_queue_properties().metadata, {'a': '1'})


@check('puts, peeks, takes and deletes messages')
def messages():
    queue = new_queue()
    for at in range(5):
        sent = queue.send_message(f'message {at}')
        assert sent.id and sent.pop_receipt and sent.expires_on > sent.inserted_on
    equal(queue.get_queue_properties().approximate_message_count, 5)
    equal(texts(queue), [f'message {at}' for at in range(5)])
    taken = list(queue.receive_messages(messages_per_page=2, visibility_timeout=60))
    equal([(each.content, each.dequeue_count) for each in taken], [(f'message {at}', 1) for at in range(5)])
    assert all(each.next_visible_on > each.inserted_on for each in taken)
    equal(texts(queue), [])
    equal(queue.receive_message(), None)
    for each in taken:
        queue.delete_message(each)
    equal(queue.get_queue_properties().approximate_message_count, 0)


@check('waits with a message, keeps it for ever, and clears the queue')
def times():
    queue = new_queue()
    hidden = queue.send_message('hidden', visibility_timeout=600)
    equal((hidden.next_visible_on - hidden.inserted_on).total_seconds(), 600)
    kept = queue.send_message('kept', time_to_live=-1)
    equal(kept.expires_on.year, 9999)
    equal(texts(queue), ['kept'])
    queue.clear_messages()
    equal(queue.get_queue_properties().approximate_message_count, 0)
    refused(404, 'MessageNotFound', lambda: queue.delete_message(hidden.id, hidden.pop_receipt))


@check('updates text and visibility, each time under a new receipt')
def receipts():
    queue = new_queue()
    queue.send_message('old')
    taken = queue.receive_message(visibility_timeout=60)
    updated = queue.update_message(taken, content='new', visibility_timeout=0)
    assert updated.pop_receipt != taken.pop_receipt
    equal(texts(queue), ['new'])
    refused(404, 'MessageNotFound', lambda: queue.delete_message(taken.id, taken.pop_receipt))
    again = queue.receive_message()
    equal((again.id, again.content, again.dequeue_count), (taken.id, 'new', 2))
    renewed = queue.update_message(again.id, again.pop_receipt, visibility_timeout=100)
    refused(404, 'MessageNotFound', lambda: queue.update_message(again.id, again.pop_receipt, visibility_timeout=5))
    queue.delete_message(again.id, renewed.pop_receipt)
    refused(404, 'MessageNotFound', lambda: queue.delete_message(again.id, renewed.pop_receipt))
    refused(400, 'InvalidQueryParameterValue', lambda: queue.delete_message(again.id, 'no receipt'))


@check('carries texts and bytes of every sort')
def contents():
    plain = new_queue()
    for text in ('', '<a b="c">&amp;</a>', '啊齄丂狛狜 😀 é', 'a\tb\nc', ' blanks ', 'x' * 65_536):
        plain.clear_messages()
        plain.send_message(text)
        equal(plain.receive_message().content or '', text)
    refused(413, 'RequestBodyTooLarge', lambda: plain.send_message('x' * 65_537))
    refused(400, 'InvalidXmlDocument', lambda: plain.send_message('\u0001'))
    coded = [
        ('é <&>', TextBase64EncodePolicy(), TextBase64DecodePolicy()),
        (bytes(range(256)), BinaryBase64EncodePolicy(), BinaryBase64DecodePolicy()),
        (bytes(49_152), BinaryBase64EncodePolicy(), BinaryBase64DecodePolicy()),
    ]
    for content, encode, decode in coded:
        policies = {'message_encode_policy': encode, 'message_decode_policy': decode}
        queue = QueueClient.from_connection_string(CONNECTION_STRING, new_queue().queue_name, **policies, **OPTIONS)
        queue.send_message(content)
        equal(queue.receive_message().content, content)


@check('is told what is out of range')
def ranges():
    queue = new_queue()
    sent = queue.send_message('text')
    refused(400, 'OutOfRangeQueryParameterValue', lambda: queue.receive_messages(messages_per_page=33).next())
    refused(400, 'OutOfRangeQueryParameterValue', lambda: queue.receive_message(visibility_timeout=604_801))
    refused(400, 'InvalidQueryParameterValue', lambda: queue.send_message('x', visibility_timeout=10, time_to_live=10))
    refused(400, 'OutOfRangeQueryParameterValue', lambda: queue.update_message(sent, visibility_timeout=604_801))
    refused(400, 'InvalidResourceName', lambda: service.create_queue('Upper'))
    refused(400, 'OutOfRangeInput', lambda: service.create_queue('ab'))


@check('opens a queue by a SAS, and only so far')
def signatures():
    queue = new_queue()
    options = {'account_key': KEY, 'expiry': later()}
    adder = queue_with(queue, generate_queue_sas(ACCOUNT, queue.queue_name, permission=QueueSasPermissions(add=True), **options))
    adder.send_message('by SAS')
    refused(403, 'AuthorizationPermissionMismatch', adder.peek_messages)
    all_of = QueueSasPermissions(read=True, add=True, update=True, process=True)
    holder = queue_with(queue, generate_queue_sas(ACCOUNT, queue.queue_name, permission=all_of, **options))
    taken = holder.receive_message()
    updated = holder.update_message(taken, visibility_timeout=0, content='updated')
    equal(texts(holder), ['updated'])
    holder.delete_message(updated)
    equal(holder.get_queue_properties().approximate_message_count, 0)
    refused(403, 'AuthorizationFailure', holder.delete_queue)
    sas = generate_account_sas(
        ACCOUNT, KEY, ResourceTypes(service=True, container=True, object=True), AccountSasPermissions(list=True, read=True), later()
    )
    lister = QueueServiceClient(URL, credential=sas, **OPTIONS)
    assert queue.queue_name in [each.name for each in lister.list_queues()]
    refused(403, 'AuthorizationPermissionMismatch', lambda: lister.create_queue(f'q-{uuid.uuid4()}'))


@check('opens a queue by a stored policy, as long as there is one')
def policies():
    queue = new_queue()
    policy = AccessPolicy(permission=QueueSasPermissions(read=True, process=True), expiry=later(), start=later() - timedelta(hours=2))
    queue.set_queue_access_policy({'policy': policy})
    stored = queue.get_queue_access_policy()
    equal(list(stored), ['policy'])
    equal(stored['policy'].permission, 'rp')
    holder = queue_with(queue, generate_queue_sas(ACCOUNT, queue.queue_name, account_key=KEY, policy_id='policy'))
    queue.send_message('text')
    equal(texts(holder), ['text'])
    refused(403, 'AuthorizationPermissionMismatch', lambda: holder.send_message('x'))
    queue.set_queue_access_policy({})
    refused(403, 'AuthenticationFailed', lambda: texts(holder))


@check('sets and reads the properties of the service')
def properties():
    service.set_service_properties(cors=[CorsRule(['https://page.example'], ['GET', 'POST'], max_age_in_seconds=5)])
    rules = service.get_service_properties()['cors']
    equal([(each.allowed_origins, each.allowed_methods, each.max_age_in_seconds) for each in rules], [('https://page.example', 'GET,POST', 5)])
    service.set_service_properties(cors=[])
    equal(service.get_service_properties()['cors'], [])


@check('becomes the exceptions of the SDK')
def exceptions():
    absent = service.get_queue_client(f'q-{uuid.uuid4()}')
    for call in (absent.get_queue_properties, lambda: absent.send_message('x'), absent.receive_message, absent.delete_queue):
        try:
            call()
        except ResourceNotFoundError as error:
            equal(error.error_code, 'QueueNotFound')
        else:
            raise AssertionError('accepted')


run()
