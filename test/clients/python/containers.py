from azure.storage.blob import ContainerClient

from harness import ACCOUNT, CONNECTION_STRING, KEY, OPTIONS, check, equal, new_container, refused, run, service


@check('creates, finds and deletes a container')
def create():
    container = new_container(metadata={'owner': 'python'})
    properties = container.get_container_properties()
    equal(properties.metadata, {'owner': 'python'})
    equal(properties.lease.state, 'available')
    equal(properties.public_access, None)
    assert container.exists()
    container.delete_container()
    assert not container.exists()


@check('gets 409 for a container that is there and 404 for one that is not')
def exists():
    container = new_container()
    refused(409, 'ContainerAlreadyExists', container.create_container)
    container.delete_container()
    refused(404, 'ContainerNotFound', container.get_container_properties)
    refused(404, 'ContainerNotFound', container.delete_container)


@check('connects by a connection string')
def by_connection_string():
    container = new_container()
    same = ContainerClient.from_connection_string(CONNECTION_STRING, container.container_name, **OPTIONS)
    equal(same.account_name, ACCOUNT)
    equal(same.get_container_properties().etag, container.get_container_properties().etag)


@check('lists containers in pages')
def lists():
    prefix = new_container().container_name[:10]
    mine = [service.create_container(f'{prefix}-{n}').container_name for n in range(5)]
    pages = service.list_containers(name_starts_with=f'{prefix}-', results_per_page=2, include_metadata=True).by_page()
    seen = [[each.name for each in page] for page in pages]
    equal([name for page in seen for name in page if name in mine], mine)
    assert all(len(page) <= 2 for page in seen), seen
    everything = [each.name for each in service.list_containers()]
    assert set(mine) <= set(everything)


@check('replaces the metadata of a container')
def metadata():
    container = new_container(metadata={'a': '1'})
    container.set_container_metadata({'b': '2'})
    equal(container.get_container_properties().metadata, {'b': '2'})
    later = container.get_container_properties().last_modified
    refused(
        412,
        'ConditionNotMet',
        lambda: container.set_container_metadata({'c': '3'}, if_modified_since=later),
    )


@check('takes, renews, changes, breaks and releases the lease of a container')
def leases():
    container = new_container()
    lease = container.acquire_lease(lease_duration=60)
    refused(412, 'LeaseIdMissing', container.delete_container)
    refused(409, 'LeaseAlreadyPresent', lambda: container.acquire_lease(lease_duration=60))
    lease.renew()
    lease.change('6b4a4d0e-51d2-4c3f-8f45-2b9a0c1d2e3f')
    equal(lease.id, '6b4a4d0e-51d2-4c3f-8f45-2b9a0c1d2e3f')
    equal(lease.break_lease(lease_break_period=0), 0)
    equal(container.get_container_properties().lease.state, 'broken')
    lease.release()
    container.delete_container()


@check('reads what the account is, and the settings of the service')
def account():
    information = service.get_account_information()
    equal(information['account_kind'], 'StorageV2')
    properties = service.get_service_properties()
    assert 'cors' in properties and 'hour_metrics' in properties, properties


@check('signs with both spellings of a credential')
def credentials():
    name = new_container().container_name
    url = f'{service.url.rstrip("/")}/{name}'
    for credential in (KEY, {'account_name': ACCOUNT, 'account_key': KEY}):
        assert ContainerClient.from_container_url(url, credential=credential, **OPTIONS).exists()


@check('is refused with another key')
def wrong_key():
    name = new_container().container_name
    other = ContainerClient.from_container_url(f'{service.url.rstrip("/")}/{name}', credential='AAAA', **OPTIONS)
    refused(403, 'AuthenticationFailed', other.get_container_properties)


@check('deletes a container only under its condition')
def conditions():
    container = new_container()
    moment = container.get_container_properties().last_modified
    refused(412, 'ConditionNotMet', lambda: container.delete_container(if_modified_since=moment))
    container.delete_container(if_unmodified_since=moment)


run()
