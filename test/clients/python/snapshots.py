from azure.core.exceptions import ResourceNotFoundError
from azure.storage.blob import RetentionPolicy

from harness import check, equal, new_container, refused, run, service


def listed(container, *include):
    return [
        (blob.name, blob.snapshot is not None, bool(blob.deleted)) for blob in container.list_blobs(include=list(include))
    ]


@check('takes snapshots, reads, lists, promotes and deletes them')
def snapshots():
    container = new_container()
    blob = container.get_blob_client('blob')
    blob.upload_blob(b'first', metadata={'a': 'b'})
    taken = blob.create_snapshot()
    blob.upload_blob(b'second', overwrite=True)
    old = container.get_blob_client('blob', snapshot=taken['snapshot'])
    equal([old.download_blob().readall(), blob.download_blob().readall()], [b'first', b'second'])
    equal(old.get_blob_properties().metadata, {'a': 'b'})
    equal(listed(container, 'snapshots'), [('blob', True, False), ('blob', False, False)])
    refused(409, 'SnapshotsPresent', blob.delete_blob)
    blob.start_copy_from_url(old.url)
    equal(blob.download_blob().readall(), b'first')
    blob.delete_blob(delete_snapshots='include')
    equal(listed(container, 'snapshots'), [])


@check('restores what is deleted or overwritten, while the policy keeps it')
def soft_delete():
    service.set_service_properties(delete_retention_policy=RetentionPolicy(enabled=True, days=2))
    try:
        equal(service.get_service_properties()['delete_retention_policy'].days, 2)
        container = new_container()
        blob = container.get_blob_client('blob')
        blob.upload_blob(b'first')
        blob.upload_blob(b'second', overwrite=True)
        blob.delete_blob()
        try:
            blob.download_blob()
            raise AssertionError('a deleted blob was read')
        except ResourceNotFoundError:
            pass
        equal(listed(container), [])
        equal(listed(container, 'deleted', 'snapshots'), [('blob', True, True), ('blob', False, True)])
        [deleted] = container.list_blobs(include=['deleted'])
        equal(deleted.remaining_retention_days, 1)
        blob.undelete_blob()
        equal(blob.download_blob().readall(), b'second')
        equal(listed(container, 'deleted', 'snapshots'), [('blob', True, False), ('blob', False, False)])
    finally:
        service.set_service_properties(delete_retention_policy=RetentionPolicy(enabled=False))


@check('keeps a snapshot of the state before each change, as the backend of Terraform does')
def terraform_backend():
    container = new_container()
    state = container.get_blob_client('terraform.tfstate')
    state.upload_blob(b'{"serial": 1}')
    for serial in (2, 3):
        lease = state.acquire_lease(-1)
        state.create_snapshot(lease=lease)
        state.upload_blob(b'{"serial": %d}' % serial, overwrite=True, lease=lease)
        lease.release()
    moments = [blob.snapshot for blob in container.list_blobs(include=['snapshots']) if blob.snapshot]
    contents = [container.get_blob_client(state.blob_name, snapshot=moment).download_blob().readall() for moment in moments]
    equal(contents, [b'{"serial": 1}', b'{"serial": 2}'])


run()
